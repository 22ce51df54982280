"""Error handlers of FastAPI's application: those of all routes, and what FastAPI refuses by itself."""

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.requests import Request
from starlette.responses import Response

from service.errors import ServiceError
from service.http.error_handlers import EXPLAINED_ERRORS, answer_error, answer_unexpected


def install_error_handlers(app: FastAPI) -> None:
    """Have exceptions answered that have a status of their own; all others are 500."""
    for kind in EXPLAINED_ERRORS:
        app.add_exception_handler(kind, answer_error)
    app.add_exception_handler(RequestValidationError, _answer_invalid_parameter)
    app.add_exception_handler(Exception, answer_unexpected)


async def _answer_invalid_parameter(request: Request, error: Exception) -> Response:
    explained = _invalid_parameter(error) if isinstance(error, RequestValidationError) else error
    return await answer_error(request, explained)


def _invalid_parameter(error: RequestValidationError) -> ServiceError:
    faults = [_describe_fault(fault) for fault in error.errors()]
    first = faults[0]
    message = f"parameter {first['parameter']!r}: {first['problem']}"
    details = {"parameter": first["parameter"], "errors": faults}
    return ServiceError(422, "invalid_parameter", message, details)


def _describe_fault(fault: Any) -> dict[str, Any]:
    problem = fault["msg"][0].lower() + fault["msg"][1:]
    return {"parameter": str(fault["loc"][-1]), "problem": problem, "value": fault.get("input")}
