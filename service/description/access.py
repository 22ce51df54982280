"""What the API's description says of keys, and of answers that come from before the routes."""

from typing import Any

from service.http.access import Access
from service.surfaces import POLLED_PATHS

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
}
_DESCRIPTIONS = {
    401: "The request has no key, or none that is known.",
    403: "The call changes the server, and the key is no admin key.",
    503: "The server starts or shuts down.",
}
_NEVER_ANSWERED = ("HTTPValidationError", "ValidationError")
"""FastAPI's own shape of a wrong parameter: errors of this server have another."""


def describe_access(schema: dict[str, Any], access: Access) -> None:
    """Write into a description what each operation answers before its route is asked."""
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
