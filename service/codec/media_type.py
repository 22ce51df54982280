"""Parses `Content-Type` headers (RFC 9110, section 8.3)."""

from dataclasses import dataclass

from python_multipart.multipart import parse_options_header


@dataclass(frozen=True, slots=True)
class MediaType:
    """A parsed `Content-Type`: its name, and its parameters by name; names are in lower case."""

    name: str
    parameters: dict[str, str]


def parse_media_type(content_type: str | None) -> MediaType:
    """Parse a `Content-Type` header; the name is empty if there is none.

    Parameters without a value are left out.
    """
    name, parameters = parse_options_header((content_type or "").encode("latin-1", "replace"))
    given = {key.decode("latin-1"): value.decode("latin-1") for key, value in parameters.items() if value}
    return MediaType(name.decode("latin-1").strip().lower(), given)
