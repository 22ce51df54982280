import asyncio
import threading
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response
from prometheus_client.parser import text_string_to_metric_families

from engine import RunResult, RuntimeGraph
from service.app import create_app
from service.config.settings import Settings
from service.services import services_of
from service.telemetry.request_log import OTHER_METHOD
from tests.service.telemetry.trace_events import check_trace_events

pytestmark = pytest.mark.anyio

SOON = 60.0
"""Seconds in which something happens that must happen; never reached unless the test fails."""

VECTOR = {"inputs": [{"data": [[1.0, -2.0, 3.0]]}]}


async def infer(client: AsyncClient, model: str = "vector", **options: str) -> Response:
    return await client.post("/infer", params={"model": model, **options}, json=VECTOR)


async def samples(client: AsyncClient, name: str) -> dict[tuple[str, ...], float]:
    """Return the values of one metric by its labels' values, in order of the labels' names."""
    text = (await client.get("/metrics")).text
    return {
        tuple(value for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    }


async def test_metrics_count_what_was_asked(fresh_client: AsyncClient) -> None:
    responses = [
        await infer(fresh_client),
        await infer(fresh_client),
        await infer(fresh_client, capture="nothing"),
    ]
    assert [response.status_code for response in responses] == [200, 200, 422]
    assert (await samples(fresh_client, "nv_inference_request_success"))["vector", "1"] == 2
    assert (await samples(fresh_client, "nv_inference_count"))["vector", "1"] == 2
    assert (await samples(fresh_client, "nv_inference_exec_count"))["vector", "1"] == 2
    assert (await samples(fresh_client, "nv_inference_request_failure"))["vector", "OTHER", "1"] == 1
    assert (await samples(fresh_client, "nv_inference_request_success"))["pair", "1"] == 0
    assert (await samples(fresh_client, "kuiper_request_seconds_count"))["vector", "1"] == 2
    layers = await samples(fresh_client, "kuiper_layer_seconds_count")
    assert layers["vector", "nn.ReLU", "1"] == 2


async def test_observed_runs_are_counted_apart(fresh_client: AsyncClient) -> None:
    responses = [
        await infer(fresh_client, capture="0"),
        await infer(fresh_client, trace="stats"),
        await infer(fresh_client),
    ]
    assert [response.status_code for response in responses] == [200, 200, 200]
    assert (await samples(fresh_client, "kuiper_observed_request_seconds_count"))["vector", "1"] == 2
    for name in ("nv_inference_request_success", "nv_inference_exec_count", "kuiper_compute_seconds_count"):
        assert (await samples(fresh_client, name))["vector", "1"] == 1
    assert (await samples(fresh_client, "kuiper_layer_seconds_count"))["vector", "nn.ReLU", "1"] == 1
    listed = (await fresh_client.get("/traces")).json()["traces"]
    assert [run["observed"] for run in listed] == [False, True, True]
    chrome = (await fresh_client.get("/traces?format=chrome")).json()["traceEvents"]
    forwards = [event["args"] for event in chrome if event["name"] == "forward"]
    assert [args.get("observed", False) for args in forwards] == [True, True, False]


async def test_http_requests_are_counted_by_template(fresh_client: AsyncClient) -> None:
    await fresh_client.get("/models/vector")
    await fresh_client.get("/models/no-such-model")
    await fresh_client.get("/no/such/page")
    await fresh_client.request("BREW", "/models/vector")
    counted = await samples(fresh_client, "http_server_request_duration_seconds_count")
    assert counted["GET", "200", "/models/{name}"] == 1
    assert counted["GET", "404", "/models/{name}"] == 1
    assert counted["GET", "404", ""] == 1
    assert counted[OTHER_METHOD, "405", "/models/{name}"] == 1
    text = (await fresh_client.get("/metrics")).text
    assert "no-such" not in text
    assert "BREW" not in text


async def test_state_of_the_server(client: AsyncClient) -> None:
    assert (await samples(client, "nv_inference_pending_request_count"))["digit", "1"] == 0
    assert (await samples(client, "kuiper_queue_capacity"))["digit", "1"] == 1
    assert (await samples(client, "kuiper_model_info"))["digit", "classification", "1"] == 1
    assert await samples(client, "kuiper_workers") == {(): 1}
    assert await samples(client, "kuiper_workers_busy") == {(): 0}
    assert (await samples(client, "process_resident_memory_bytes"))[()] > 0


async def test_format_follows_accept(client: AsyncClient) -> None:
    plain = await client.get("/metrics")
    assert plain.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    openmetrics = await client.get(
        "/metrics", headers={"Accept": "application/openmetrics-text;version=1.0.0"}
    )
    assert openmetrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert openmetrics.text.endswith("# EOF\n")


async def test_metrics_response_before_models_are_loaded(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    services_of(fresh_app).loaded = None
    response = await fresh_client.get("/metrics")
    assert response.status_code == 200
    assert "kuiper_workers 1" in response.text


async def test_batches_add_up(settings: Settings) -> None:
    batching = {"max_batch_size": 4, "queue_size": 16}
    app = create_app(settings.model_copy(update=batching))
    client = AsyncClient(transport=ASGITransport(app), base_url="http://test")
    async with app.router.lifespan_context(app), client:
        responses = await asyncio.gather(*(infer(client) for _ in range(8)))
        assert {response.status_code for response in responses} == {200}
        assert (await samples(client, "nv_inference_request_success"))["vector", "1"] == 8
        assert (await samples(client, "nv_inference_count"))["vector", "1"] == 8
        assert (await samples(client, "kuiper_batch_size_sum"))["vector", "1"] == 8
        runs = (await samples(client, "nv_inference_exec_count"))["vector", "1"]
        assert runs == (await samples(client, "kuiper_batch_size_count"))["vector", "1"]
        assert runs < 8
        # the layers of a run count once, however many requests it was for
        assert (await samples(client, "kuiper_layer_seconds_count"))["vector", "nn.ReLU", "1"] == runs
        chart = (await client.get("/traces?format=chrome")).json()
        check_trace_events(chart)
        assert sum(event["name"] == "forward" for event in chart["traceEvents"]) == runs


async def test_refusals_are_counted_wherever_they_happen(
    fresh_client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    run = RuntimeGraph.run

    def run_later(graph: RuntimeGraph, *args: Any, **options: Any) -> RunResult:
        begun.set()
        assert go_on.wait(SOON)
        return run(graph, *args, **options)

    monkeypatch.setattr(RuntimeGraph, "run", run_later)
    tasks = [asyncio.create_task(infer(fresh_client))]
    assert await asyncio.to_thread(begun.wait, SOON)
    # one runs, one may wait, and there is room for no more
    tasks += [asyncio.create_task(infer(fresh_client)) for _ in range(8)]
    async with asyncio.timeout(SOON):
        while sum(task.done() for task in tasks) < 7:
            await asyncio.sleep(0)
    go_on.set()
    assert sorted(response.status_code for response in await asyncio.gather(*tasks)) == [200] * 2 + [503] * 7
    assert (await samples(fresh_client, "nv_inference_request_failure"))["vector", "REJECTED", "1"] == 7
    assert (await samples(fresh_client, "nv_inference_request_success"))["vector", "1"] == 2


@pytest.mark.parametrize(
    ("path", "content", "status"),
    [
        ("/infer?model=vector&tarce=off", b"{}", 422),
        ("/infer?model=vector", b"x" * 10_001, 413),
        ("/infer?model=vector", b"{", 400),
        ("/v2/models/vector/infer", b"{", 400),
        ("/v2/models/vector/infer", b"x" * 10_001, 413),
    ],
)
async def test_requests_that_never_become_calls_are_counted(
    fresh_client: AsyncClient, path: str, content: bytes, status: int
) -> None:
    response = await fresh_client.post(path, content=content)
    assert response.status_code == status
    assert (await samples(fresh_client, "nv_inference_request_failure"))["vector", "OTHER", "1"] == 1


async def test_snapshot_shows_all_loaded_models(app: FastAPI, client: AsyncClient) -> None:
    snapshot = services_of(app).snapshot()
    assert snapshot.identities == {("digit", "1"), ("pair", "1"), ("vector", "1")}
