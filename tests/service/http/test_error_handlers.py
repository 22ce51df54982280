"""The one error shape, for every way in which a request can fail before and beyond a route."""

from collections.abc import Callable

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from starlette.exceptions import HTTPException

from engine import InputError, LayerError
from service.errors import ServiceError

pytestmark = pytest.mark.anyio


def check_shape(response: Response, status: int, code: str) -> dict[str, object]:
    body = response.json()
    assert response.status_code == status, body
    assert response.headers["content-type"] == "application/json"
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
    response = await client.get(path)
    check_shape(response, 404, "not_found")
    assert response.json()["error"].endswith("; the probes are GET /livez and GET /readyz")


async def test_trailing_slash_is_another_path(client: AsyncClient) -> None:
    check_shape(await client.get("/livez/"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("GET", "/infer", "POST"), ("POST", "/models", "GET"), ("DELETE", "/models/vector", "GET")],
)
async def test_wrong_method(client: AsyncClient, method: str, path: str, allowed: str) -> None:
    response = await client.request(method, path)
    details = check_shape(response, 405, "method_not_allowed")
    assert details == {"path": path, "allowed": [allowed]}
    assert response.headers["allow"] == allowed


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
    response = await fresh_client.get("/raise")
    assert check_shape(response, 409, "taken") == {"n": None}
    assert response.headers["x-why"] == "because"


async def test_http_exception_of_any_status(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    raising(fresh_app, lambda: HTTPException(418, "no coffee"))
    response = await fresh_client.get("/raise")
    check_shape(response, 418, "http_418")
    assert response.json()["error"] == "no coffee"


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
    response = await fresh_client.get("/raise")
    check_shape(response, status, code)
    assert response.json()["error"] == (str(make()) or "the server has too little memory for the request")
    assert response.headers.get("Retry-After") == ("1" if status == 503 else None)


async def test_anything_else_is_a_fault_of_the_server(fresh_app: FastAPI, fresh_client: AsyncClient) -> None:
    fresh_app.add_exception_handler(KeyError, fresh_app.exception_handlers[ServiceError])
    raising(fresh_app, lambda: KeyError("secret"))
    response = await fresh_client.get("/raise", headers={"X-Request-ID": "r1"})
    assert check_shape(response, 500, "internal_error") == {"request_id": "r1"}
