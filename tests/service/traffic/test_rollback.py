"""A version gives its share back where it fails or differs too often, and keeps to that until it is told otherwise."""

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient

from service.config.traffic_config import RollbackConfig
from service.traffic.rollback import DifferenceWatch, ErrorWatch, RollbackCause
from service.traffic.traffic import Traffic
from tests.engine.models import write_model
from tests.service.models import add_model
from tests.service.stores.folders import PolledFolder, write_scale
from tests.service.traffic.conftest import BODY, Serve, scaled
from tests.service.traffic.test_shadow import compared, traffic_of

pytestmark = pytest.mark.anyio

WIDE = """
pnnx.Input      in    0 1 0 #0=(?,4)f32
pnnx.Attribute  scale 0 1 1 @data=(1,4)f32 #1=(1,4)f32
pnnx.Expression mul   2 1 0 1 2 expr=mul(@0,@1) #2=(?,4)f32
pnnx.Output     out   1 0 2
"""
HALVES = '[traffic]\nweights = {"1" = 1, "4" = 1}\nrollback = {errors = 0.2, least = 10}\n'


async def statuses(client: AsyncClient, requests: int) -> Counter[int]:
    return Counter([(await client.post("/infer", json=BODY)).status_code for _ in range(requests)])


def shares(traffic: dict[str, Any]) -> list[tuple[str, float]]:
    return [(one["version"], one["wanted"]) for one in traffic["versions"]]


@pytest.fixture
def failing(root: Path) -> Path:
    """Adds version 4, which takes no inputs that the others take."""
    folder = root / "m/4"
    folder.mkdir()
    write_model(folder, WIDE, {"scale.data": np.ones((1, 4), np.float32)})
    return folder


@pytest.mark.usefixtures("failing")
async def test_a_version_that_fails_gives_its_share_back(
    serve: Serve, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serve(HALVES) as (_, client):
        with caplog.at_level(logging.WARNING):
            assert (await statuses(client, 60))[422] < 20
        assert caplog.messages.count("version rolled back") == 1
        assert set(await statuses(client, 40)) == {200}
        traffic = await traffic_of(client)
        assert shares(traffic) == [("1", 1.0), ("4", 0.0)]
        back = traffic["versions"][1]["rolled_back"]
        assert back["cause"] == "errors"
        assert (
            "requests were not answered, 100.00%; of version 1 0.00%: the limit is 20.00% more"
            in back["reason"]
        )
        assert (await client.get("/models/m")).json()["traffic"]["versions"][1]["rolled_back"] == back
        metrics = (await client.get("/metrics")).text
        assert 'kuiper_traffic_rollbacks_total{cause="errors",model="m"} 1.0' in metrics
        assert 'kuiper_traffic_share{model="m",version="4"} 0.0' in metrics

        undone = await client.delete("/models/m/traffic/rollback")
        assert shares(undone.json()) == [("1", 0.5), ("4", 0.5)]
        assert (await statuses(client, 10))[422] == pytest.approx(5, abs=2)
        await statuses(client, 60)
        assert shares(await traffic_of(client)) == [("1", 1.0), ("4", 0.0)]
        assert (await client.post("/v2/repository/models/m/load")).status_code == 200
        assert shares(await traffic_of(client)) == [("1", 0.5), ("4", 0.5)]


async def test_what_fails_on_every_version_rolls_nothing_back(serve: Serve, root: Path) -> None:
    add_model(root / "m", "4", scaled(2.0))
    async with serve(HALVES) as (_, client):
        for _ in range(100):
            assert (await client.post("/infer", content=b"no JSON")).status_code >= 400
        assert shares(await traffic_of(client)) == [("1", 0.5), ("4", 0.5)]


@pytest.mark.usefixtures("failing")
async def test_requests_that_name_their_version_roll_nothing_back(serve: Serve) -> None:
    async with serve(HALVES) as (_, client):
        for _ in range(100):
            assert (await client.post("/infer?version=4", json=BODY)).status_code == 422
        await statuses(client, 9)  # after eight it is judged
        assert shares(await traffic_of(client)) == [("1", 0.5), ("4", 0.5)]
        await statuses(client, 60)
        assert shares(await traffic_of(client)) == [("1", 1.0), ("4", 0.0)]


@pytest.mark.usefixtures("failing")
async def test_clients_whom_a_header_led_to_a_version_fail_for_themselves(serve: Serve) -> None:
    sticky = HALVES.replace("rollback", 'sticky = "X-User"\nrollback')
    async with serve(sticky) as (_, client):
        found: Counter[int] = Counter()
        for number in range(100):
            answer = await client.post("/infer", json=BODY, headers={"X-User": str(number)})
            found[answer.status_code] += 1
        assert min(found[200], found[422]) > 20
        assert shares(await traffic_of(client)) == [("1", 0.5), ("4", 0.5)]


async def test_a_version_that_differs_gives_its_share_back(serve: Serve) -> None:
    text = (
        '[traffic]\nweights = {"1" = 3, "2" = 1}\nshadow = {version = "2", share = 1}\n'
        "rollback = {difference = 0.01, least = 3}\n"
    )
    async with serve(text) as (_, client):
        for number in range(1, 4):
            await client.post("/infer?version=1", json=BODY)
            await compared(client, number)
        traffic = await traffic_of(client)
        back = traffic["versions"][1]["rolled_back"]
        assert back["cause"] == "difference"
        assert "3 of 3 shadow runs failed or differ by more than 0.01, by 1.5 at most" in back["reason"]
        assert traffic["rollbacks"] == {"errors": 0, "difference": 1, "request": 0}


async def test_an_administrator_rolls_back(serve: Serve, tmp_path: Path) -> None:
    keys = {"api_keys": "plain-key-of-a-client", "admin_keys": "admin-key-of-this-server"}
    async with serve('[traffic]\nweights = {"1" = 1, "3" = 1}', **keys) as (_, client):
        path = "/models/m/traffic/rollback"
        plain, admin = ({"X-API-Key": key} for key in keys.values())
        assert (await client.post(path)).status_code == 401
        assert (await client.post(path, headers=plain)).status_code == 403
        assert (await client.delete(path, headers=plain)).status_code == 403
        answer = await client.post(path, headers=admin)
        assert shares(answer.json()) == [("1", 1.0), ("3", 0.0)]
        assert answer.json()["versions"][1]["rolled_back"]["cause"] == "request"
        answer = await client.delete(path, headers=admin)
        assert shares(answer.json()) == [("1", 0.5), ("3", 0.5)]


def test_a_version_that_a_poll_keeps_stays_rolled_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = '[traffic]\nweights = {"1" = 1, "2" = 1}\n'
    for version in "12":
        write_scale(tmp_path / "m" / version, int(version))
    (tmp_path / "m" / "model.toml").write_text(table)
    polled, traffic = PolledFolder(tmp_path), Traffic()

    def chosen() -> dict[str, float]:
        entry = polled.repository.entry("m")
        for _ in range(10):
            traffic.find(entry, None, {})
        found = traffic.of(entry)
        assert found is not None
        return {version: found.chosen[version] / 10 for version in found.wanted}

    assert min(chosen().values()) > 0
    found = traffic.of(polled.repository.entry("m"))
    assert found is not None
    found.roll_back_all("tried")
    write_scale(tmp_path / "m" / "3", 3)
    polled.polls(2)
    assert "m/3" in polled.scales()
    assert chosen() == {"1": 1, "2": 0}
    kept = traffic.of(polled.repository.entry("m"))
    assert kept is not None
    assert kept is not found
    assert kept.rollbacks[RollbackCause.REQUEST] == 1, "each process keeps it, and none counts it anew"
    assert [record.getMessage() for record in caplog.records].count("version rolled back") == 1
    write_scale(tmp_path / "m" / "2", 4)
    polled.polls(2)
    assert chosen()["2"] > 0, "it is another one"


def watch(errors: float, counts: dict[str, tuple[int, int]]) -> ErrorWatch:
    config = RollbackConfig(errors=errors, least=100)
    return ErrorWatch(config, lambda _, version: counts[version], "m", "3", "2")


def test_too_few_requests_are_not_judged() -> None:
    counts = {"2": (0, 0), "3": (0, 0)}
    errors = watch(0.05, counts)
    counts["3"] = (99, 99)
    assert errors.judge() is None
    counts["3"] = (100, 99)
    found = errors.judge()
    assert found is not None
    assert found.cause is RollbackCause.ERRORS


@pytest.mark.parametrize(
    ("failed", "stable", "rolls_back"),
    [
        (5, (900, 0), False),
        (6, (900, 0), True),
        (14, (900, 90), False),
        (16, (900, 90), True),
        (6, (0, 0), True),
    ],
)
def test_errors_are_judged_beside_those_of_the_stable_version(
    failed: int, stable: tuple[int, int], rolls_back: bool
) -> None:
    counts = {"2": (50, 50), "3": (1000, 1000)}
    errors = watch(0.05, counts)
    counts["2"], counts["3"] = (50 + stable[0], 50 + stable[1]), (1100, 1000 + failed)
    assert (errors.judge() is not None) == rolls_back
    assert errors.judge() is None  # a new window


def test_counts_that_begin_anew_are_no_errors() -> None:
    counts = {"2": (50, 50), "3": (1000, 1000)}
    errors = watch(0.05, counts)
    counts["3"] = (150, 0)
    assert errors.judge() is None
    counts["3"] = (250, 50)
    assert errors.judge() is not None


def test_single_differences_are_let_pass() -> None:
    differences = DifferenceWatch(RollbackConfig(errors=0.1, difference=0.01, least=20))
    found = [differences.judge(1.0 if run % 10 == 0 else 0.01) for run in range(200)]
    assert found == [None] * 200
    found = [differences.judge(float("inf") if run < 3 else 0.0) for run in range(20)]
    assert found[:19] == [None] * 19
    assert found[19] is not None
