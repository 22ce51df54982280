"""Shadow runs: what they show, and that no response and no statistics know of them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient

from tests.engine.models import write_model
from tests.service.api.responses import check_error
from tests.service.models import DIGIT, DIGIT_CONFIG, add_model
from tests.service.scheduling.stubs import SOON
from tests.service.traffic.conftest import BODY, Serve, scaled

pytestmark = pytest.mark.anyio

SHADOW = '[traffic]\nweights = {"1" = 1}\nshadow = {version = "2", share = 1}\n'
RANDOM = """
pnnx.Input       in    0 1 0 #0=(?,3)f32
torch.randn_like noise 1 1 0 1 #0=(?,3)f32 #1=(?,3)f32
pnnx.Output      out   1 0 1 #1=(?,3)f32
"""
LINEAR = """
pnnx.Input  in     0 1 0 #0=(1,4)f32
nn.Linear   first  1 1 0 1 bias=False in_features=4 out_features=4 @weight=(4,4)f32 #0=(1,4)f32 #1=(1,4)f32
nn.Linear   middle 1 1 1 2 bias=False in_features=4 out_features=4 @weight=(4,4)f32 #1=(1,4)f32 #2=(1,4)f32
nn.Linear   last   1 1 2 3 bias=False in_features=4 out_features=4 @weight=(4,4)f32 #2=(1,4)f32 #3=(1,4)f32
pnnx.Output out    1 0 3 #3=(1,4)f32
"""
"""Three layers whose weights are `first.weight`, `middle.weight` and `last.weight`."""


async def until(ask: Callable[[], Awaitable[Any]], is_so: Callable[[Any], bool]) -> Any:
    """Ask again and again until the response is as wanted; return it."""
    async with asyncio.timeout(SOON):
        while not is_so(found := await ask()):
            await asyncio.sleep(0)
    return found


async def traffic_of(client: AsyncClient) -> dict[str, Any]:
    response = await client.get("/models/m/traffic")
    assert response.status_code == 200, response.text
    return dict(response.json())


async def compared(client: AsyncClient, count: int = 1) -> dict[str, Any]:
    """Return the traffic when so many shadow runs have ended."""
    return dict(await until(lambda: traffic_of(client), lambda traffic: len(traffic["runs"]) >= count))


async def test_a_shadow_run_shows_how_versions_differ(serve: Serve) -> None:
    async with serve(SHADOW) as (_, client):
        await client.post("/infer", json=BODY, headers={"X-Request-ID": "mine"})
        traffic = await compared(client)
        (run,) = traffic["runs"]
        assert (run["request_id"], run["version"], run["shadow"]) == ("mine", "1", "2")
        assert (run["outcome"], run["max_abs"], run["max_rel"]) == (
            "differs",
            9.0,
            1.5,
        )  # 2x and -x of 1, 2, 3
        assert run["shadow_ms"] > 0
        assert run["divergence"]["operator"] == "scale"
        assert traffic["shadow"]["divergence"] == run["divergence"]
        assert traffic["shadow"]["outcomes"]["differs"] == 1
        metrics = (await client.get("/metrics")).text
        assert 'kuiper_shadow_requests_total{model="m",outcome="differs"} 1.0' in metrics
        assert 'kuiper_shadow_difference_bucket{le="1.0",model="m"} 0.0' in metrics
        assert 'kuiper_shadow_compute_seconds_count{model="m",version="2"} 1.0' in metrics


async def test_nobody_else_counts_a_shadow_run(serve: Serve) -> None:
    async with serve(SHADOW) as (_, client):
        await client.post("/infer", json=BODY)
        await compared(client)
        statistics = (await client.get("/v2/models/m/versions/2/stats")).json()["model_stats"][0]
        assert statistics["inference_stats"]["success"]["count"] == statistics["execution_count"] == 0
        assert (await client.get("/stats")).json()["models"]["m"]["requests"] == 1


async def test_no_response_is_changed(serve: Serve) -> None:
    bodies = [{"inputs": [{"data": [[float(n), n / 7, -float(n)]]}]} for n in range(20)]
    responses = []
    for config in ('[traffic]\nweights = {"1" = 1}', SHADOW):
        async with serve(config) as (_, client):
            responses.append([(await client.post("/infer", json=body)).json()["outputs"] for body in bodies])
            if config == SHADOW:
                await compared(client)
    assert responses[0] == responses[1]


async def test_versions_that_agree_do(serve: Serve, root: Path) -> None:
    add_model(root / "m", "4", scaled(2.0005))
    async with serve(SHADOW.replace('"2"', '"4"')) as (_, client):
        await client.post("/infer", json=BODY)
        (run,) = (await compared(client))["runs"]
        assert (run["outcome"], run["divergence"]) == ("agrees", None)
        assert run["max_rel"] == pytest.approx(0.0005 / 2, rel=0.01)


@pytest.mark.parametrize("backend", ["numpy", "native"])
async def test_the_layer_whose_weights_were_changed_is_named(serve: Serve, root: Path, backend: str) -> None:
    weights = np.random.default_rng(0).standard_normal((3, 4, 4)).astype(np.float32)
    (root / "m").rename(root / "gone")
    for version in ("1", "2"):
        folder = root / "m" / version
        folder.mkdir(parents=True)
        names = ("first", "middle", "last")
        stored = {f"{name}.weight": one.copy() for name, one in zip(names, weights, strict=True)}
        if version == "2":
            stored["middle.weight"][1, 2] += 1
        write_model(folder, LINEAR, stored)
    (root / "gone").rename(root.parent / f"{root.name}-gone")
    async with serve(SHADOW, backend=backend) as (_, client):
        await client.post("/infer", json={"inputs": [{"data": [[1.0, 2.0, 3.0, 4.0]]}]})
        divergence = (await compared(client))["runs"][0]["divergence"]
        assert divergence["operator"] == "middle"
        assert divergence["type"] == "nn.Linear"
        assert divergence["max_abs"] > 0.1


async def test_labels_that_differ_are_counted(serve: Serve, root: Path) -> None:
    (root / "m").rename(root.parent / f"{root.name}-gone")
    turned = DIGIT.replace(
        "nn.Softmax    soft          1 1 1 2 dim=1", "pnnx.Expression soft 1 1 1 2 expr=neg(@0)"
    )
    for version, lines in {"1": DIGIT, "2": turned}.items():
        add_model(root / "m", version, lines, DIGIT_CONFIG)
    async with serve(SHADOW, backend="numpy") as (_, client):
        await client.post("/infer", json={"inputs": [{"data": [[[[*range(10)]]]]}]})
        traffic = await compared(client)
        assert traffic["runs"][0]["labels"] == traffic["shadow"]["labels"] == 1


async def test_a_trace_reports_the_shadow_run(serve: Serve) -> None:
    async with serve(SHADOW) as (_, client):
        await client.post("/infer?trace=on", json=BODY, headers={"X-Request-ID": "traced"})
        await compared(client)
        shadow = (await client.get("/traces/traced")).json()["shadow"]
        assert (shadow["shadow"], shadow["outcome"]) == ("2", "differs")


async def test_runs_that_keep_operands_have_no_shadow(serve: Serve) -> None:
    async with serve(SHADOW) as (_, client):
        await client.post("/infer?capture=1", json=BODY)
        traffic = await traffic_of(client)
        assert traffic["shadow"]["outcomes"]["not_comparable"] == 1
        assert traffic["runs"] == []


@pytest.mark.parametrize(
    ("lines", "config", "reason"),
    [
        (RANDOM, "", "version 4 draws random numbers in torch.randn_like noise"),
        (scaled(2.0).replace("(?,3)", "(?,4)"), "", "the inputs of versions 1 and 4 differ"),
        (DIGIT, DIGIT_CONFIG, "prepare inputs differently: [image] differs"),
    ],
)
async def test_what_cannot_be_compared_is_said_in_words(
    serve: Serve, root: Path, lines: str, config: str, reason: str
) -> None:
    add_model(root / "m", "4", lines, config)
    async with serve(SHADOW.replace('"2"', '"4"')) as (_, client):
        await client.post("/infer", json=BODY)
        traffic = await traffic_of(client)
        assert reason in traffic["shadow"]["refusals"]["1"]
        assert set(traffic["shadow"]["outcomes"].values()) == {0}


async def test_only_a_share_is_run_again(serve: Serve) -> None:
    async with serve(SHADOW.replace("share = 1", "share = 0.25")) as (_, client):
        for _ in range(80):
            await client.post("/infer", json=BODY)
        outcomes = (await until(lambda: traffic_of(client), lambda one: _ended(one) >= 19))["shadow"][
            "outcomes"
        ]
        assert sum(outcomes.values()) == pytest.approx(20, abs=2)


async def test_an_unknown_traffic_is_an_error(serve: Serve) -> None:
    async with serve("") as (_, client):
        check_error(await client.get("/models/m/traffic"), 404, "no_traffic")


def _ended(traffic: dict[str, Any]) -> int:
    return sum(traffic["shadow"]["outcomes"].values())
