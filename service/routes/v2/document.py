"""The JSON body of a request that is no inference."""

from dataclasses import replace

from fastapi import Request

from service.http.body import read_body
from service.services import services_of
from service.v2.compression import decompress, parse_encoding
from service.v2.document import Document, parse_optional_object

_MOST_BYTES = 1 << 20


async def read_document(request: Request) -> Document:
    """Read the JSON object in the body of a request; an empty body is read as an empty object.

    Raises:
        ServiceError: 400, 408, 413 or 501.
    """
    services = services_of(request)
    settings = services.settings
    limits = replace(settings.limits, body_bytes=min(settings.limits.body_bytes, _MOST_BYTES))
    encoding = parse_encoding(request.headers.get("content-encoding"))
    body = await read_body(request, limits, settings.timeout, services.lifecycle, is_encoded=True)
    return parse_optional_object(decompress(body, encoding, limits))
