"""Requests that name no version are shared, on every protocol; those that name one are not."""

import asyncio
import logging
from collections import Counter
from pathlib import Path

import pytest
from httpx import AsyncClient

from service.config.settings import Settings
from service.repository.repository import RepositoryError, load_repository
from tests.service.api.responses import check_error
from tests.service.models import UNKNOWN_LAYER, add_model
from tests.service.traffic.conftest import BODY, FACTORS, Serve

pytestmark = pytest.mark.anyio

SPLIT = '[traffic]\nweights = {"2" = 90, "3" = 10}\nsticky = "X-User"'
V2_BODY = {"inputs": [{"name": "in", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}


async def version_of(client: AsyncClient, query: str = "", user: str | None = None) -> str:
    headers = {} if user is None else {"X-User": user}
    response = await client.post(f"/infer{query}", json=BODY, headers=headers)
    assert response.status_code == 200, response.text
    document = response.json()
    factor = FACTORS[document["version"]]
    assert document["outputs"][0]["data"] == [[factor, 2 * factor, 3 * factor]]
    return str(document["version"])


async def versions_of(client: AsyncClient, requests: int) -> Counter[str]:
    return Counter([await version_of(client) for _ in range(requests)])


async def test_requests_are_split(serve: Serve) -> None:
    async with serve(SPLIT) as (_, client):
        assert (await versions_of(client, 500))["3"] == pytest.approx(50, abs=5)
        shown = (await client.get("/models/m")).json()
        assert shown["version"] == "2"
        traffic = shown["traffic"]
        assert (traffic["stable"], traffic["sticky"]) == ("2", "X-User")
        assert [(one["version"], one["wanted"]) for one in traffic["versions"]] == [("2", 0.9), ("3", 0.1)]
        assert sum(one["requests"] for one in traffic["versions"]) == 500
        assert traffic["versions"][1]["seen"] == pytest.approx(0.1, abs=0.01)
        assert (await client.get("/models")).json()["models"][0]["traffic"] == traffic
        metrics = (await client.get("/metrics")).text
        assert 'kuiper_traffic_share{model="m",version="3"} 0.1' in metrics
        counts = [one["requests"] for one in traffic["versions"]]
        assert f'kuiper_traffic_requests_total{{model="m",version="3"}} {counts[1]}.0' in metrics


async def test_a_version_that_is_named_responses(serve: Serve) -> None:
    async with serve(SPLIT) as (_, client):
        for version in FACTORS:
            assert {await version_of(client, f"?version={version}", "anna") for _ in range(20)} == {version}
        assert (await client.get("/models/m")).json()["traffic"]["versions"][0]["requests"] == 0


async def test_every_protocol_is_split(serve: Serve) -> None:
    async with serve(SPLIT.replace("90", "50").replace("10", "50")) as (_, client):
        v2 = [await client.post("/v2/models/m/infer", json=V2_BODY) for _ in range(20)]
        assert Counter(response.json()["model_version"] for response in v2)["3"] == pytest.approx(10, abs=3)
        named = await client.post("/v2/models/m/versions/1/infer", json=V2_BODY)
        assert named.json()["model_version"] == "1"
        v1 = [await client.post("/v1/models/m:predict", json={"instances": [[1, 2, 3]]}) for _ in range(20)]
        firsts = Counter(response.json()["predictions"][0][0] for response in v1)
        assert firsts[3.0] == pytest.approx(10, abs=3)
        assert set(firsts) == {-1.0, 3.0}


async def test_a_user_stays_with_a_version_over_starts(serve: Serve) -> None:
    users = [f"user-{number}" for number in range(60)]
    seen: list[dict[str, str]] = []
    for _ in range(2):
        async with serve(SPLIT.replace("90", "1").replace("10", "1")) as (_, client):
            first = {user: await version_of(client, "", user) for user in users}
            assert first == {user: await version_of(client, "", user) for user in users}
            seen.append(first)
    assert seen[0] == seen[1]
    assert set(seen[0].values()) == {"2", "3"}


async def test_an_empty_header_is_none(serve: Serve) -> None:
    async with serve(SPLIT.replace("90", "1").replace("10", "1")) as (_, client):
        assert {await version_of(client, "", "") for _ in range(10)} == {"2", "3"}


async def test_a_reload_takes_new_weights_and_a_broken_one_changes_nothing(serve: Serve, root: Path) -> None:
    config = root / "m/model.toml"
    async with serve(SPLIT) as (_, client):
        config.write_text('[traffic]\nweights = {"4" = 1}')
        refused = await client.post("/v2/repository/models/m/load")
        assert refused.status_code == 400
        assert "traffic: version 4 not served; there are 1, 2, 3" in refused.json()["error"]
        assert (await versions_of(client, 20)).keys() == {"2", "3"}
        config.write_text('[traffic]\nweights = {"1" = 1}')
        assert (await client.post("/v2/repository/models/m/load")).status_code == 200
        assert (await versions_of(client, 20)).keys() == {"1"}
        config.write_text("")
        assert (await client.post("/v2/repository/models/m/load")).status_code == 200
        assert (await versions_of(client, 20)).keys() == {"3"}
        assert (await client.get("/models/m")).json()["traffic"] is None


async def test_a_model_that_is_unloaded_is_chosen_no_more(serve: Serve) -> None:
    async with serve(SPLIT) as (_, client):
        await client.post("/v2/repository/models/m/unload")
        check_error(await client.post("/infer?model=m", json=BODY), 503, "model_unloaded")
        assert "kuiper_traffic_share{" not in (await client.get("/metrics")).text
        policy = '{"version_policy": {"specific": {"versions": [1, 2]}}}'
        refused = await client.post("/v2/repository/models/m/load", json={"parameters": {"config": policy}})
        assert "version 3 not served; there are 1, 2" in refused.json()["error"]
        await client.post("/v2/repository/models/m/load")
        assert (await versions_of(client, 40)).keys() == {"2", "3"}


async def test_the_share_of_a_broken_version_goes_to_the_others(
    serve: Serve, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    add_model(root / "m", "4", UNKNOWN_LAYER)
    text = '[traffic]\nweights = {"2" = 1, "3" = 1, "4" = 2}'
    with caplog.at_level(logging.WARNING):
        async with serve(text, skip_broken=True) as (_, client):
            assert (await versions_of(client, 40))["3"] == pytest.approx(20, abs=3)
    assert "share of a version goes to others, as it is not served" in caplog.messages


async def test_no_version_with_a_weight_is_served(serve: Serve, root: Path) -> None:
    add_model(root / "m", "4", UNKNOWN_LAYER)
    async with serve('[traffic]\nweights = {"4" = 1}', skip_broken=True) as (_, client):
        response = await client.post("/infer?model=m", json=BODY)
        check_error(response, 503, "model_broken")
        assert "name one: 1, 2, 3" in response.json()["error"]
        assert await version_of(client, "?version=2") == "2"
        assert (await client.get("/models")).json()["models"][0]["traffic"]["stable"] is None


@pytest.mark.parametrize(
    ("where", "reason"),
    [("m/model.toml", "traffic: version 7 not served"), ("m/2/model.toml", "traffic: given for one version")],
)
def test_a_table_that_does_not_fit_keeps_the_model_from_being_served(
    root: Path, where: str, reason: str
) -> None:
    (root / where).write_text('[traffic]\nweights = {"7" = 1}')
    with pytest.raises(RepositoryError, match=reason):
        load_repository(Settings(models=root, warm_up=False, backend="numpy"))


async def test_no_request_fails_while_the_model_is_loaded_again(serve: Serve, root: Path) -> None:
    config, tables = root / "m/model.toml", [SPLIT, '[traffic]\nweights = {"1" = 1, "3" = 1}', ""]
    async with serve(SPLIT, workers=2, queue_size=64) as (_, client):
        over = asyncio.Event()

        async def ask(user: str) -> set[str]:
            seen = set()
            while not over.is_set():
                seen.add(await version_of(client, "", user))
            return seen

        mine: list[str] = []
        asking = [asyncio.create_task(ask(f"user-{number}")) for number in range(4)]
        for table in tables * 2:
            config.write_text(table)
            assert (await client.post("/v2/repository/models/m/load")).status_code == 200
            mine.append(await version_of(client))
        over.set()
        seen = set().union(*await asyncio.gather(*asking))
    assert seen <= {"1", "2", "3"}
    assert mine[2] == mine[5] == "3"
