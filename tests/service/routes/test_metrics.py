import asyncio

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from prometheus_client.parser import text_string_to_metric_families

from service.services import services_of
from service.telemetry.http_requests import OTHER_METHOD

pytestmark = pytest.mark.anyio

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


async def test_metrics_count_what_was_asked(client: AsyncClient) -> None:
    answers = await asyncio.gather(*(infer(client) for _ in range(2)), infer(client, capture="nothing"))
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200, 200, 422]
    assert (await samples(client, "nv_inference_request_success"))["vector", "1"] == 2
    assert (await samples(client, "nv_inference_count"))["vector", "1"] == 2
    assert (await samples(client, "nv_inference_exec_count"))["vector", "1"] == 2
    assert (await samples(client, "nv_inference_request_failure"))["vector", "OTHER", "1"] == 1
    assert (await samples(client, "nv_inference_request_success"))["pair", "1"] == 0
    assert (await samples(client, "kuiper_request_seconds_count"))["vector", "1"] == 2
    layers = await samples(client, "kuiper_layer_seconds_count")
    assert layers["vector", "nn.ReLU", "1"] == 2


async def test_http_requests_are_counted_by_template(client: AsyncClient) -> None:
    await client.get("/models/vector")
    await client.get("/models/no-such-model")
    await client.get("/no/such/page")
    await client.request("BREW", "/models/vector")
    counted = await samples(client, "http_server_request_duration_seconds_count")
    assert counted["GET", "200", "/models/{name}"] == 1
    assert counted["GET", "404", "/models/{name}"] == 1
    assert counted["GET", "404", ""] == 1
    assert counted[OTHER_METHOD, "405", "/models/{name}"] == 1
    text = (await client.get("/metrics")).text
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


async def test_metrics_answer_before_models_are_loaded(app: FastAPI, client: AsyncClient) -> None:
    services_of(app).loaded = None
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    assert "kuiper_workers 1" in answer.text
