"""The JSON body of a request that is no inference."""

from dataclasses import replace

from fastapi import Request

from service.codec.formats import parse_media_type
from service.errors import ServiceError, shown
from service.http.body import read_body
from service.services import services_of
from service.v2.compression import decompress, parse_encoding
from service.v2.document import Document, parse_optional_object

_MAX_BYTES = 1 << 20
_JSON = "application/json"
_UNNAMED = ("", "application/octet-stream")
"""What clients send that name no type: Triton's."""
_FORM = "application/x-www-form-urlencoded"


async def read_document(request: Request) -> Document:
    """Read the JSON object in the body of a request; an empty body is read as an empty object.

    Raises:
        ServiceError: 400, 408, 413, 415 or 501.
    """
    _check_type(request)
    services = services_of(request)
    settings = services.settings
    limits = replace(settings.limits, body_bytes=min(settings.limits.body_bytes, _MAX_BYTES))
    encoding = parse_encoding(request.headers.get("content-encoding"))
    body = await read_body(request, limits, settings.timeout, services.lifecycle, is_encoded=True)
    return parse_optional_object(decompress(body, encoding, limits))


def _check_type(request: Request) -> None:
    """Refuse types that a web page may send to any server without asking it first, and all others that are not JSON.

    `curl -d` calls all that it sends a form, so that is taken for JSON, but not of browsers.
    """
    name = parse_media_type(request.headers.get("content-type")).name
    from_browser = "origin" in request.headers or "sec-fetch-site" in request.headers
    if name in (_JSON, *_UNNAMED) or name.endswith("+json") or (name == _FORM and not from_browser):
        return
    message = f"the body is of type {shown(name)}; expected Content-Type: {_JSON}"
    details = {"content_type": name[:80], "accepted": [_JSON]}
    raise ServiceError(415, "unsupported_media_type", message, details)
