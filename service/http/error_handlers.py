"""Turns every exception into an error response of the same JSON form."""

import json
from http import HTTPStatus
from itertools import pairwise
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from engine import InputError, LayerError
from service.context import context_of
from service.errors import ServiceError, as_service_error, did_you_mean
from service.http.paths import is_v2_path
from service.services import services_of
from service.v2.errors import as_v2

_EXPLAINED_ERRORS = (ServiceError, InputError, LayerError, HTTPException, MemoryError, RequestValidationError)
"""Exceptions that have a status of their own; all others become 500, and logged by `GuardMiddleware`."""
_OTHER_PROBES = frozenset(("health", "healthz", "live", "ping", "ready", "health/live", "health/ready"))
"""Where other servers have their probes."""


def install_error_handlers(app: FastAPI) -> None:
    """Register the responses of exceptions that have a status of their own."""
    for kind in _EXPLAINED_ERRORS:
        app.add_exception_handler(kind, _response_error)


def error_response(error: ServiceError) -> Response:
    """Return the error response for a client."""
    return Response(_dump(error.body()), error.status, headers=error.headers, media_type="application/json")


def format_error(error: ServiceError, path: str) -> ServiceError:
    """Return an error in the form that clients of a path expect."""
    return as_v2(error) if is_v2_path(path) else error


def internal_error(request_id: str) -> ServiceError:
    """Return the message for a fault of the server: only where to find it in the log."""
    return ServiceError(
        500,
        "internal_error",
        "the server failed; its log says why, under this request id",
        {"request_id": request_id},
    )


def _dump(body: dict[str, Any]) -> bytes:
    """Return a body as JSON; clients may write numbers of more than 64 bits, which only the slower way can repeat."""
    try:
        return orjson.dumps(body, default=str)
    except TypeError:
        return json.dumps(body, default=str).encode()


async def _response_error(request: Request, error: Exception) -> Response:
    """Return the response to a request that ended in an exception."""
    # not a plain function: such a handler gets a thread of a pool, and refusals come when there is least to spare
    explained = _explain(request, error)
    if explained.status == HTTPStatus.SERVICE_UNAVAILABLE:
        await services_of(request).error_throttle.wait(context_of(request).client)
    error.__traceback__ = None  # its frames refer to the error: together they would outlive the request
    return error_response(format_error(explained, request.scope["path"]))


def _explain(request: Request, error: Exception) -> ServiceError:
    match error:
        case HTTPException():
            return _http_error(request, error)
        case RequestValidationError():
            return _invalid_parameter(error)
    return as_service_error(error) or internal_error(context_of(request).request_id)


def _http_error(request: Request, error: HTTPException) -> ServiceError:
    path = request.url.path
    headers = dict(error.headers or {})
    details: dict[str, Any] = {"path": path[:200]}
    code, message = f"http_{error.status_code}", str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND:
        code, message = "not_found", f"nothing is at {path[:200]!r}; /docs lists what there is"
        if path.strip("/").lower() in _OTHER_PROBES:
            message += "; the probes are GET /livez and GET /readyz"
        else:
            message += did_you_mean(path[:200], _known_paths(request, path[:200]))
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        details["allowed"] = allowed = sorted(headers.get("Allow", "").split(", "))
        code, message = "method_not_allowed", f"{request.method} is not allowed on {path}; use {allowed[0]}"
        if ":" in path:  # an action of a model, of which POST has several
            message += did_you_mean(path[:200], _known_paths(request, path[:200], request.method))
    return ServiceError(error.status_code, code, message, details, headers)


def _known_paths(request: Request, path: str, method: str | None = None) -> list[str]:
    """Return the server's paths, those of a method or all, with the names that a path has in them."""
    routes = request.app.routes
    if method is not None:
        routes = [route for route in routes if method in (getattr(route, "methods", None) or ())]
    known = (_filled(getattr(route, "path", ""), path.split("/")) for route in routes)
    return [one for one in known if one != path]  # a route below which nothing has this name


def _filled(template: str, given: list[str]) -> str:
    """Return a path with the name that follows the same part in another one: `/v1/models/{name}:predict`."""
    parts = []
    for before, part in pairwise(["", *template.split("/")]):
        if "{" in part and before in given[:-1]:
            name = given[given.index(before) + 1].partition(":")[0]
            parts.append(name + part[part.index("}") + 1 :])
        else:
            parts.append(part)
    return "/".join(parts)


def _invalid_parameter(error: RequestValidationError) -> ServiceError:
    faults = [_describe_fault(fault) for fault in error.errors()]
    first = faults[0]
    message = f"parameter {first['parameter']!r}: {first['problem']}"
    details = {"parameter": first["parameter"], "errors": faults}
    return ServiceError(422, "invalid_parameter", message, details)


def _describe_fault(fault: Any) -> dict[str, Any]:
    problem = fault["msg"][0].lower() + fault["msg"][1:]
    return {"parameter": str(fault["loc"][-1]), "problem": problem, "value": fault.get("input")}
