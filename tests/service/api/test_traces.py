from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient
from pydantic import SecretStr

from service.config.settings import Settings
from service.telemetry.trace_view import TraceDetail, TraceList
from tests.service.conftest import serving
from tests.service.telemetry.trace_events import check_trace_events

pytestmark = pytest.mark.anyio

FORMATS = ("json", "chrome")
VECTOR = {"inputs": [{"data": [[1.0, -2.0, 3.0]]}]}


async def infer(client: AsyncClient, request_id: str, trace: str = "on") -> dict[str, Any]:
    response = await client.post(
        "/infer",
        params={"model": "vector", "trace": trace},
        json=VECTOR,
        headers={"X-Request-ID": request_id},
    )
    assert response.status_code == 200
    body: dict[str, Any] = response.json()
    return body


async def test_traced_runs_are_listed_newest_first(fresh_client: AsyncClient) -> None:
    await infer(fresh_client, "first")
    await infer(fresh_client, "second", trace="stats")
    response = await fresh_client.get("/traces")
    traces = TraceList.model_validate(response.json(), strict=True).traces
    assert [trace.request_id for trace in traces] == ["second", "first"]
    assert (traces[0].model, traces[0].version, traces[0].ending) == ("vector", "1", "SUCCESS")
    assert traces[0].protocol == "infer"
    assert traces[0].total_ms > 0
    assert set(response.json()["traces"][0]) == set(
        TraceList.model_json_schema()["$defs"]["TraceSummary"]["required"]
    )


async def test_trace_is_the_one_that_the_request_was_answered_with(client: AsyncClient) -> None:
    answered = await infer(client, "mine", trace="stats")
    response = await client.get("/traces/mine")
    detail = TraceDetail.model_validate(response.json(), strict=True)
    assert response.json()["trace"] == answered["trace"]
    assert set(response.json()) == set(TraceDetail.model_fields)
    assert detail.worker.startswith("worker-")
    moments = [moment for moment in detail.stamps.values() if moment is not None]
    assert len(moments) == 6
    assert moments == sorted(moments)
    assert detail.total_ms == pytest.approx(moments[-1], abs=0.001)


async def test_a_key_sees_its_own_runs_and_an_admin_key_those_of_all(models: Path) -> None:
    one, other, admin = ({"X-API-Key": name * 16} for name in "abc")
    settings = Settings(
        models=models,
        workers=1,
        api_keys=SecretStr(f"{one['X-API-Key']},{other['X-API-Key']}"),
        admin_keys=SecretStr(admin["X-API-Key"]),
    )
    async with serving(settings) as client:

        async def listed(key: dict[str, str]) -> list[str]:
            responses = [
                await client.get("/traces", headers=key, params={"format": name}) for name in FORMATS
            ]
            ids = [trace["request_id"] for trace in responses[0].json()["traces"]]
            assert all(
                (request_id in responses[1].text) == (request_id in ids) for request_id in ("run-x", "run-y")
            )
            return ids

        async def found(request_id: str, key: dict[str, str]) -> int:
            return (await client.get(f"/traces/{request_id}", headers=key)).status_code

        for request_id, key in (("run-x", one), ("run-y", other), ("run-y", one)):
            headers = {**key, "X-Request-ID": request_id}
            assert (await client.post("/infer?model=vector", json=VECTOR, headers=headers)).status_code == 200
        assert [await listed(key) for key in (one, other, admin)] == [
            ["run-y", "run-x"],
            ["run-y"],
            ["run-y", "run-y", "run-x"],
        ]
        assert [await found("run-x", key) for key in (one, other, admin)] == [200, 404, 200]


async def test_ids_may_have_any_characters(client: AsyncClient) -> None:
    await infer(client, "a/b?c%2Fd")
    response = await client.get("/traces/a%2Fb%3Fc%252Fd")
    assert response.json()["request_id"] == "a/b?c%2Fd"


async def test_unknown_trace_is_not_found(client: AsyncClient) -> None:
    for path in ("/traces/none", "/traces/"):
        response = await client.get(path)
        assert (response.status_code, response.json()["code"]) == (404, "trace_not_found")


async def test_one_run_as_a_trace_event_file(client: AsyncClient) -> None:
    await infer(client, "chart")
    response = await client.get("/traces/chart?format=chrome")
    trace = response.json()
    check_trace_events(trace)
    assert "kuiper-trace.json" in response.headers["content-disposition"]
    layers = [event for event in trace["traceEvents"] if event.get("cat") == "layer"]
    assert [layer["name"] for layer in layers] == ["pnnx.Input", "nn.ReLU", "pnnx.Output"]
    assert layers[1]["args"]["outputs"] == ["(1,3)f32"]


async def test_all_runs_in_one_trace_event_file(fresh_client: AsyncClient) -> None:
    for request_id in ("first", "second"):
        await infer(fresh_client, request_id)
    trace = (await fresh_client.get("/traces?format=chrome")).json()
    check_trace_events(trace)
    forwards = [event["args"]["request_id"] for event in trace["traceEvents"] if event["name"] == "forward"]
    assert forwards == ["first", "second"]


async def test_unknown_format_is_refused(client: AsyncClient) -> None:
    assert (await client.get("/traces?format=xml")).status_code == 422


async def test_runs_that_came_by_v2_are_kept_as_well(client: AsyncClient) -> None:
    tensor = {"name": "pnnx_input_0", "shape": [1, 3], "datatype": "FP32", "data": [1.0, -2.0, 3.0]}
    response = await client.post(
        "/v2/models/vector/infer",
        json={"inputs": [tensor], "parameters": {"trace": True}},
        headers={"X-Request-ID": "two"},
    )
    assert response.status_code == 200, response.text
    detail = (await client.get("/traces/two")).json()
    assert (detail["protocol"], detail["ending"]) == ("v2", "SUCCESS")
    assert [layer["type"] for layer in detail["trace"]["layers"]] == ["pnnx.Input", "nn.ReLU", "pnnx.Output"]


async def test_runs_that_came_by_predict_are_kept_as_well(fresh_client: AsyncClient) -> None:
    await fresh_client.post("/v2/trace/setting", json={"trace_rate": "1"})
    response = await fresh_client.post(
        "/v1/models/vector:predict", json={"instances": [[1.0, -2.0, 3.0]]}, headers={"X-Request-ID": "three"}
    )
    assert response.status_code == 200, response.text
    assert [trace["protocol"] for trace in (await fresh_client.get("/traces")).json()["traces"]] == ["v1"]
