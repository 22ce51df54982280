"""The one error shape, for every way in which a request can fail before and beyond a route."""

from collections.abc import Callable

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from starlette.exceptions import HTTPException

from engine import InputError, LayerError
from service.errors import ServiceError

pytestmark = pytest.mark.anyio


def check_shape(answer: Response, status: int, code: str) -> dict[str, object]:
    body = answer.json()
    assert answer.status_code == status, body
    assert answer.headers["content-type"] == "application/json"
    assert list(body) == ["error", "code", "details"]
    assert body["code"] == code
    assert isinstance(body["error"], str)
    assert body["error"]
    details = body["details"]
    assert isinstance(details, dict)
    return details


def raising(app: FastAPI, make: Callable[[], Exception]) -> None:
    @app.get("/raise")
    async def fail() -> None:
        raise make()


async def test_unknown_path(client: AsyncClient) -> None:
    details = check_shape(await client.get("/nowhere"), 404, "not_found")
    assert details == {"path": "/nowhere"}


@pytest.mark.parametrize("path", ["/health", "/healthz", "/ready", "/Health/", "/health/live"])
async def test_probes_of_other_servers(client: AsyncClient, path: str) -> None:
    answer = await client.get(path)
    check_shape(answer, 404, "not_found")
    assert answer.json()["error"].endswith("; the probes are GET /livez and GET /readyz")


async def test_trailing_slash_is_another_path(client: AsyncClient) -> None:
    check_shape(await client.get("/livez/"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/infer", "POST"), ("POST", "/models", "GET"), ("DELETE", "/models/vector", "GET")],
)
async def test_wrong_method(client: AsyncClient, method: str, path: str, allowed: str) -> None:
    answer = await client.request(method, path)
    details = check_shape(answer, 405, "method_not_allowed")
    assert details == {"path": path, "allowed": [allowed]}
    assert answer.headers["allow"] == allowed


async def test_parameter_that_fastapi_refuses(client: AsyncClient) -> None:
    details = check_shape(await client.get("/graph?model=pair&format=svg"), 422, "invalid_parameter")
    assert details == {
        "parameter": "format",
        "errors": [
            {
                "parameter": "format",
                "problem": "input should be 'json', 'dot', 'mermaid' or 'layout'",
                "value": "svg",
            }
        ],
    }


async def test_error_of_the_service(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    raising(fresh_app, lambda: ServiceError(409, "taken", "no", {"n": float("nan")}, {"X-Why": "because"}))
    answer = await fresh_client.get("/raise")
    assert check_shape(answer, 409, "taken") == {"n": None}
    assert answer.headers["x-why"] == "because"


async def test_http_exception_of_any_status(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    raising(fresh_app, lambda: HTTPException(418, "no coffee"))
    answer = await fresh_client.get("/raise")
    check_shape(answer, 418, "http_418")
    assert answer.json()["error"] == "no coffee"


def out_of_memory() -> LayerError:
    error = LayerError("nn.Conv2d c: too much")
    error.__cause__ = MemoryError()
    return error


@pytest.mark.parametrize(
    ("make", "status", "code"),
    [
        (lambda: InputError("input 'a': is missing"), 422, "input_mismatch"),
        (lambda: LayerError("nn.Linear fc: no"), 422, "layer_failed"),
        (out_of_memory, 503, "out_of_memory"),
        (MemoryError, 503, "out_of_memory"),
    ],
)
async def test_engine_error(
    fresh_app: FastAPI, fresh_client: AsyncClient, make: Callable[[], Exception], status: int, code: str
) -> None:
    raising(fresh_app, make)
    answer = await fresh_client.get("/raise")
    check_shape(answer, status, code)
    assert answer.json()["error"] == (str(make()) or "the server has too little memory for the request")
    assert answer.headers.get("Retry-After") == ("1" if status == 503 else None)


async def test_anything_else_is_a_fault_of_the_server(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    fresh_app.add_exception_handler(KeyError, fresh_app.exception_handlers[ServiceError])
    raising(fresh_app, lambda: KeyError("secret"))
    answer = await fresh_client.get("/raise", headers={"X-Request-ID": "r1"})
    assert check_shape(answer, 500, "internal_error") == {"request_id": "r1"}
