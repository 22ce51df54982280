"""Triton's asyncio client by gRPC, with the responses that it gets over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import tritonclient.grpc.aio as triton
import tritonclient.http.aio as triton_http
from tritonclient.utils import InferenceServerException

from tests.service.grpc.servers import same, tensor
from tests.service.server.process import ServerProcess
from tests.service.v2 import calls
from tests.service.v2.calls import PAIR, SAMPLE

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(address: str) -> AsyncIterator[Any]:
    async with triton.InferenceServerClient(address) as created:
        yield created


@pytest.fixture
async def http(grpc_server: ServerProcess) -> AsyncIterator[Any]:
    async with triton_http.InferenceServerClient(urlsplit(grpc_server.url).netloc) as created:
        yield created


def pair() -> list[Any]:
    return [tensor(name, array) for name, array in zip("ab", PAIR, strict=True)]


async def test_calls_besides_inference(client: Any) -> None:
    assert await client.is_server_live()
    assert await client.is_server_ready()
    assert await client.is_model_ready("pair")
    assert (await client.get_server_metadata()).name == "kuiper-serve"
    assert [tensor.name for tensor in (await client.get_model_metadata("pair")).inputs] == ["a", "b"]
    assert (await client.get_model_config("pair")).config.max_batch_size == 0
    assert (await client.get_inference_statistics("pair")).model_stats[0].name == "pair"
    assert "pair" in {line.name for line in (await client.get_model_repository_index()).models}
    start = await client.get_trace_settings()
    assert await client.update_trace_settings(settings={}) == start
    assert (await client.get_log_settings()).settings["log_error"].bool_param
    await client.load_model("reloaded")


async def test_responses_are_those_of_http(client: Any, http: Any) -> None:
    image = np.array([SAMPLE.read_bytes()], object)
    response = await client.infer("digits", [tensor("0", image)])
    expected = await http.infer("digits", [calls.tensor("0", image)])
    same(response.as_numpy("31"), expected.as_numpy("31"))
    responses = await asyncio.gather(
        *(client.infer("pair", pair(), request_id=str(number)) for number in range(50))
    )
    assert [response.get_response().id for response in responses] == [str(number) for number in range(50)]
    for response in responses:
        np.testing.assert_array_equal(response.as_numpy("t"), [2, 0])


async def test_refusals(client: Any) -> None:
    with pytest.raises(InferenceServerException, match="missing") as caught:
        await client.infer("pair", pair()[:1])
    assert caught.value.status() == "StatusCode.INVALID_ARGUMENT"
    with pytest.raises(InferenceServerException) as caught:
        await client.infer("blocking", [tensor("0", np.array([5], np.float32))], client_timeout=0.05)
    assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"
