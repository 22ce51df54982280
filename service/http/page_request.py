"""Determines which requests are those of a browser that is to show a page."""

from collections.abc import Iterable


def asks_for_page(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether `Accept` names HTML, which clients of the API do not.

    Args:
        headers: names in lower case and values.
    """
    return any(name == b"accept" and b"text/html" in value.lower() for name, value in headers)
