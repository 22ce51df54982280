"""Counters for charts."""

import pytest
from httpx import AsyncClient

from service.histogram import REQUEST_SECONDS
from service.telemetry.stats_view import StatsView
from tests.service.api.responses import VECTOR

pytestmark = pytest.mark.anyio


async def stats(client: AsyncClient) -> StatsView:
    return StatsView.model_validate((await client.get("/stats")).json(), strict=True)


async def test_every_model_is_there_before_its_first_request(fresh_client: AsyncClient) -> None:
    shown = await stats(fresh_client)
    assert set(shown.models) == {"digit", "pair", "vector"}
    assert shown.uptime_s > 0
    assert (shown.workers, shown.busy) == (1, 0)
    assert shown.memory_bytes is None or shown.memory_bytes > 1 << 20
    vector = shown.models["vector"]
    assert (vector.requests, vector.errors, vector.batch_sizes) == (0, {}, {})
    assert vector.latency.bounds_ms == pytest.approx([bound * 1000 for bound in REQUEST_SECONDS])
    assert vector.latency.counts == [0] * (len(REQUEST_SECONDS) + 1)


async def test_requests_are_counted_by_how_they_ended(fresh_client: AsyncClient) -> None:
    for _ in range(3):
        assert (await fresh_client.post("/infer?model=vector", json=VECTOR)).status_code == 200
    await fresh_client.post("/infer?model=vector&capture=1", json=VECTOR)
    await fresh_client.post("/infer?model=vector", json={"inputs": []})
    vector = (await stats(fresh_client)).models["vector"]
    assert (vector.requests, vector.observed, vector.errors) == (5, 1, {"OTHER": 1})
    assert (vector.items, vector.runs, vector.batch_sizes) == (3, 3, {"1": 3})
    assert sum(vector.latency.counts) == 3
    assert vector.latency.sum_ms > 0
    assert (vector.queue_length, vector.in_flight) == (0, 0)
