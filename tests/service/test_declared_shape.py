"""Which shape a model declares, and what is reported where it does not run on another."""

import numpy as np
import pytest
from httpx import AsyncClient

from engine import LayerError, Port
from service.errors import ServiceError, engine_error
from tests.service.api.responses import check_error

pytestmark = pytest.mark.anyio

PORTS = [Port("left", "a", (None, 2), "f32"), Port("right", "b", None, None), Port("third", "c", (3,), "i64")]
ERROR = LayerError("nn.Conv2d ground: a window spans 28 elements")


def named(**shapes: tuple[int, ...]) -> ServiceError:
    return engine_error(ERROR, PORTS, {name: np.zeros(shape) for name, shape in shapes.items()})


def test_first_input_of_another_shape_is_named() -> None:
    error = named(a=(5, 2), b=(9,), c=(4,))
    assert (error.status, error.code) == (422, "layer_failed")
    assert str(error) == (
        "input third has shape [4], on which the model does not run; it declares c: (3)i64: "
        "nn.Conv2d ground: a window spans 28 elements"
    )
    assert error.details == {"name": "third", "shape": [4], "expected": [3]}


def test_another_rank_is_another_shape() -> None:
    error = named(a=(2,))
    assert error.details["expected"] == [None, 2]


def test_inputs_as_declared_are_not_named() -> None:
    error = named(a=(7, 2), b=(1, 1), c=(3,))
    assert (error.code, str(error), error.details) == ("layer_failed", str(ERROR), {})


def test_memory_that_is_short_is_not_the_fault_of_a_shape() -> None:
    error = LayerError("x")
    error.__cause__ = MemoryError()
    assert engine_error(error, PORTS, {"c": np.zeros(4)}).code == "out_of_memory"


async def test_client_gets_the_declared_shape(client: AsyncClient) -> None:
    body = {"inputs": [{"name": "left", "data": [1, 2, 3]}, {"name": "right", "data": [1, 2]}]}
    response = await client.post("/infer?model=pair", json=body)
    assert check_error(response, 422, "layer_failed") == {"name": "left", "shape": [3], "expected": [2]}
    assert "it declares a: (2)f32: pnnx.Expression sum" in response.json()["error"]
