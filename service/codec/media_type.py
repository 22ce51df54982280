"""`Content-Type` -> media type and parameters (RFC 9110, section 8.3)."""

from dataclasses import dataclass

from python_multipart.multipart import parse_options_header


@dataclass(frozen=True, slots=True)
class MediaType:
    """A `Content-Type`: its name in lower case, and its parameters by names in lower case."""

    name: str
    parameters: dict[str, str]


def parse_media_type(content_type: str | None) -> MediaType:
    """Read a `Content-Type` header; an empty name where there is none.

    Parameters without a value are left out.
    """
    name, parameters = parse_options_header((content_type or "").encode("latin-1", "replace"))
    given = {key.decode("latin-1"): value.decode("latin-1") for key, value in parameters.items() if value}
    return MediaType(name.decode("latin-1").strip(), given)
