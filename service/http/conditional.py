"""Responses with an entity tag (RFC 9110, section 13.1.2): what a client has already is not sent again."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from service.tagged_document import TaggedDocument

_NO_HEADERS: Mapping[str, str] = {}


def response_unless_known(
    request: Request, document: TaggedDocument, media_type: str, headers: Mapping[str, str] = _NO_HEADERS
) -> Response:
    """Return the response that sends a document, or 304 where `If-None-Match` has its tag.

    Args:
        request: what asks for it.
        document: the document.
        media_type: its media type.
        headers: what to send with either response, besides what has caches ask each time.
    """
    sent = {**headers, "Cache-Control": "no-cache", "ETag": document.tag}
    known = request.headers.get("If-None-Match", "")
    if document.tag in known or known.strip() == "*":
        return Response(status_code=304, headers=sent)
    return Response(document.content, media_type=media_type, headers=sent)
