"""The real client's asyncio form: it always says octet-stream, and advertises codings that it cannot undo."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest
import tritonclient.http.aio as triton
from tritonclient.utils import InferenceServerException

from tests.service.v2.calls import NUMPY, SAMPLE, output, tensor
from tests.service.v2.models import DTYPES

pytestmark = [
    pytest.mark.anyio,
    # the client leaves responses unread whose status is all that it wants
    pytest.mark.filterwarnings("ignore:Unclosed connection:ResourceWarning"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function Connection.__del__:pytest.PytestUnraisableExceptionWarning"
    ),
]


@pytest.fixture
async def client(address: str) -> Any:
    async with triton.InferenceServerClient(address) as created:
        yield created
    gc.collect()  # of those responses, here where no warning of them counts


async def check_refused(call: Awaitable[Any], status: str, word: str) -> None:
    with pytest.raises(InferenceServerException) as caught:
        await call
    assert caught.value.status() == status
    assert word in caught.value.message()


async def test_every_call_is_answered(client: Any) -> None:
    assert await client.is_server_live()
    assert await client.is_server_ready()
    assert await client.is_model_ready("pair", "1")
    assert not await client.is_model_ready("none")
    assert (await client.get_server_metadata())["name"] == "kuiper-serve"
    assert (await client.get_model_metadata("pair"))["versions"] == ["1"]
    assert (await client.get_model_config("pair", "1"))["max_batch_size"] == 0
    assert (await client.get_inference_statistics("pair"))["model_stats"][0]["name"] == "pair"
    assert {line["name"] for line in await client.get_model_repository_index()} >= {"pair", "digits"}
    assert (await client.get_trace_settings())["trace_mode"] == "triton"
    assert (await client.update_trace_settings("pair", {"trace_rate": None}))["trace_rate"] == "100"
    assert (await client.get_log_settings())["log_error"] is True
    assert (await client.update_log_settings({"log_error": True}))["log_error"] is True
    await client.unload_model("reloaded")
    assert not await client.is_model_ready("reloaded")
    await client.load_model("reloaded")
    assert await client.is_model_ready("reloaded")


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype in NUMPY])
@pytest.mark.parametrize("binary_out", [True, False])
async def test_datatypes(client: Any, dtype: str, binary_out: bool) -> None:
    array = np.array([[0, 1], [1, 1]], NUMPY[dtype])
    response = await client.infer(f"same_{dtype}", [tensor("in", array)], outputs=[output("out", binary_out)])
    found = response.as_numpy("out")
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


async def test_json_in_and_out(client: Any) -> None:
    array = np.array([[-1, 0.5]], np.float32)
    response = await client.infer("same_f32", [tensor("in", array, False)], outputs=[output("out", False)])
    np.testing.assert_array_equal(response.as_numpy("out"), array)


async def test_images_and_classes(client: Any) -> None:
    images = np.array([SAMPLE.read_bytes()], object)
    response = await client.infer("digits", [tensor("0", images)], outputs=[output("31", classes=1)])
    assert response.as_numpy("31")[0, 0].endswith(b":7:7")


@pytest.mark.parametrize("coding", [None, "gzip", "deflate"])
async def test_compression(client: Any, coding: str | None) -> None:
    array = np.arange(2000, dtype=np.float32).reshape(1000, 2)
    response = await client.infer(
        "same_f32",
        [tensor("in", array)],
        request_compression_algorithm=coding,
        response_compression_algorithm=coding,
    )
    np.testing.assert_array_equal(response.as_numpy("out"), array)


async def test_requests_side_by_side(client: Any) -> None:
    arrays = [np.full((1, 2), number, np.float32) for number in range(20)]
    responses = await asyncio.gather(*(client.infer("same_f32", [tensor("in", array)]) for array in arrays))
    for array, response in zip(arrays, responses, strict=True):
        np.testing.assert_array_equal(response.as_numpy("out"), array)


@pytest.mark.parametrize(
    ("call", "status", "word"),
    [
        (lambda client: client.infer("none", []), "404", "none"),
        (lambda client: client.infer("same_f32", []), "400", "missing"),
        (lambda client: client.infer("same_f32", [tensor("x", np.ones((1, 2)))]), "400", "'x'"),
        (lambda client: client.infer("same_f32", [tensor("in", np.ones((1, 2)))]), "400", "FP64"),
        (lambda client: client.infer("same_f64", [tensor("in", np.ones((1, 3)))]), "400", "[1, 3]"),
        (lambda client: client.get_model_metadata("none"), "404", "none"),
        (lambda client: client.load_model("none"), "404", "none"),
    ],
)
async def test_mistakes(client: Any, call: Callable[[Any], Awaitable[Any]], status: str, word: str) -> None:
    await check_refused(call(client), status, word)
