"""Adds API keys, and answers given before a route is called, to the OpenAPI description."""

from typing import Any

from service.http.access import Access
from service.surfaces import POLLED_PATHS

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_DESCRIPTIONS = {
    401: "The request has no valid key.",
    403: "The operation changes the server, and the key is not an admin key.",
    503: "The server is starting or shutting down.",
}
_NEVER_ANSWERED = ("HTTPValidationError", "ValidationError")
"""FastAPI's schemas of errors in parameters, which this server never answers with."""


def describe_access(schema: dict[str, Any], access: Access) -> None:
    """Add to each operation of a description the answers that are given before its route is called."""
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            _drop_unused(responses)
            statuses = access.statuses(method.upper(), path)
            for status in statuses if path in POLLED_PATHS else (*statuses, 503):
                responses.setdefault(str(status), _error(status))
            if statuses:
                operation["security"] = [{name: []} for name in _SCHEMES]
    components = schema["components"]
    for name in _NEVER_ANSWERED:
        components["schemas"].pop(name, None)
    if access.is_limited:
        components["securitySchemes"] = _SCHEMES


def _drop_unused(responses: dict[str, Any]) -> None:
    content = responses.get("422", {}).get("content", {}).get("application/json", {})
    if content.get("schema", {}).get("$ref", "").endswith(_NEVER_ANSWERED):
        del responses["422"]


def _error(status: int) -> dict[str, Any]:
    body = {"schema": {"$ref": "#/components/schemas/ErrorBody"}}
    return {"description": _DESCRIPTIONS[status], "content": {"application/json": body}}
