"""The client for asyncio against a real server."""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from service.client import AsyncClient, ConnectionFailedError, DeadlineError, NotFoundError, Retries
from tests.service.server.process import ServerProcess

pytestmark = pytest.mark.anyio
ROWS = np.array([[-1, 2, -3]], np.float32)


async def test_calls_side_by_side(server: ServerProcess, picture: Path) -> None:
    async with AsyncClient(server.url) as client:
        results = await asyncio.gather(*(client.infer(ROWS * n, model="vector") for n in range(20)))
        assert [float(result[0][0, 1]) for result in results] == [2.0 * n for n in range(20)]
        response = await client.predict([picture.read_bytes()], model="digit")
        assert response.predictions[0][0]["label"] == "p7"
        assert (await client.trace(ROWS, model="vector")).layers[1].type == "nn.ReLU"
        assert len(await client.models()) == 4
        assert (await client.model("vector"))["name"] == "vector"
        assert (await client.graph("vector"))["execution_order"]
        assert (await client.draw("vector")).startswith("%%")


async def test_errors_and_deadlines(server: ServerProcess) -> None:
    async with AsyncClient(server.url) as client:
        with pytest.raises(NotFoundError):
            await client.infer(ROWS, model="none")
        with pytest.raises(DeadlineError):
            await client.infer(np.array([9], np.float32), model="blocking", deadline=3)
        server.entered.take()
        server.gate.give()


async def test_a_cancelled_call_gives_its_connection_back(server: ServerProcess) -> None:
    async with AsyncClient(server.url) as client:
        call = asyncio.create_task(client.infer(np.array([5], np.float32), model="blocking"))
        await asyncio.to_thread(server.entered.take)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        server.gate.give()
        assert (await client.infer(ROWS, model="vector"))[0].shape == (1, 3)
        pooled = client._http._transport._pool.connections  # type: ignore[attr-defined]  # what httpx holds open
        assert all(connection.is_idle() for connection in pooled)


async def test_nobody_responses() -> None:
    async with AsyncClient("http://127.0.0.1:9", retries=Retries(seconds=0)) as client:
        with pytest.raises(ConnectionFailedError):
            await client.models()
