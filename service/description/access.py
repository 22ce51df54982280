"""Adds API keys, and responses given before a route is called, to the OpenAPI description."""

from typing import Any

from service.http.access import Access
from service.http.guard import OriginPolicy
from service.http.paths import POLLED_PATHS
from service.schemas import ERROR_CONTENT

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_DESCRIPTIONS = {
    401: "The request has no valid key.",
    403: "The operation changes the server, and the key is not an admin key.",
    503: "The server is starting or shutting down.",
}
_FOREIGN = {
    403: "A web page of another origin sent the request.",
    421: "The Host of the request is not in allowed_hosts.",
}
_NEVER_ANSWERED = ("HTTPValidationError", "ValidationError")
"""FastAPI's schemas of errors in parameters, which this server never returns."""


def describe_access(schema: dict[str, Any], access: Access, origins: OriginPolicy) -> None:
    """Add to each operation of a description the responses that are given before its route is called.

    Args:
        schema: the description.
        access: which operations need keys.
        origins: refuses requests for other hosts and, with 403, of other origins.
    """
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            _drop_unused(responses)
            kind = method.upper(), path
            keyed, foreign = access.statuses(*kind), origins.statuses(*kind)
            draining = () if path in POLLED_PATHS else (503,)
            for status in (*keyed, *draining):
                responses.setdefault(str(status), _error(_DESCRIPTIONS[status]))
            for status in foreign:
                _add_cause(responses, status, _FOREIGN[status])
            if keyed:
                operation["security"] = [{name: []} for name in _SCHEMES]
    components = schema["components"]
    for name in _NEVER_ANSWERED:
        components["schemas"].pop(name, None)
    if access.is_limited:
        components["securitySchemes"] = _SCHEMES


def _add_cause(responses: dict[str, Any], status: int, cause: str) -> None:
    """Describe a status that a route, or the lack of a key, may return as well."""
    known = responses.get(str(status))
    responses[str(status)] = _error(cause if known is None else f"{known['description']} {cause}")


def _drop_unused(responses: dict[str, Any]) -> None:
    content = responses.get("422", {}).get("content", {}).get("application/json", {})
    if content.get("schema", {}).get("$ref", "").endswith(_NEVER_ANSWERED):
        del responses["422"]


def _error(description: str) -> dict[str, Any]:
    return {"description": description, "content": ERROR_CONTENT}
