"""Pipelines of small models: tensors of one step are inputs of another; errors, deadlines and cancellation."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from PIL import Image

from service.config.settings import Settings
from service.scheduling.job import CallStatus
from service.services import services_of
from tests.cases import check_each
from tests.service.api.responses import check_error, values
from tests.service.api.test_infer_queue import Gate, number, waiting_in_queue
from tests.service.codec.payloads import encoded
from tests.service.conftest import client_of, running
from tests.service.models import DIGIT, DIGIT_CONFIG, VECTOR, add_model, add_pipeline
from tests.service.scheduling.stubs import Records, expire, jobs_of

pytestmark = pytest.mark.anyio

DOUBLE = """
pnnx.Input      pnnx_input_0  0 1 0 #0=(?,3)f32
pnnx.Expression twice         1 1 0 1 expr=mul(@0,2) #0=(?,3)f32 #1=(?,3)f32
pnnx.Output     pnnx_output_0 1 0 1 #1=(?,3)f32
"""
ROW = """
task = "pipeline"
[[pipeline.steps]]
name = "a"
model = "vector"
[[pipeline.steps]]
name = "b"
model = "double"
tensors = {pnnx_input_0 = "a/pnnx_output_0"}
"""

BRIGHTEST = """
pnnx.Input            pnnx_input_0  0 1 0 #0=(?,1,8,8)f32
F.adaptive_avg_pool2d pool          1 1 0 1 output_size=(2,1) $input=0 #0=(?,1,8,8)f32 #1=(?,1,2,1)f32
torch.flatten         flat          1 1 1 2 start_dim=1 end_dim=-1 $input=1 #1=(?,1,2,1)f32 #2=(?,2)f32
pnnx.Output           pnnx_output_0 1 0 2 #2=(?,2)f32
"""
"""How bright the upper and the lower half of a picture are."""
SAME = """
pnnx.Input  pnnx_input_0  0 1 0 #0=(1,1,60,60)f32
F.relu      same          1 1 0 1 $input=0 #0=(1,1,60,60)f32 #1=(1,1,60,60)f32
pnnx.Output pnnx_output_0 1 0 1 #1=(1,1,60,60)f32
"""
HALVES = """
task = "classification"
labels = {labels}
image = {{colour = "gray"}}
classification = {{softmax = false}}
"""
FIND = 'task = "text-detection"\nimage = {colour = "gray"}\ntext-detection = {expand = 0}\n'
READ = """
[[pipeline.steps]]
name = "find"
model = "lines"
[[pipeline.steps]]
name = "turn"
model = "{turn}"
crops = "find"
[[pipeline.steps]]
name = "read"
model = "halves"
crops = "find"
upright = "turn"
"""

BOTH = """
[[pipeline.steps]]
name = "judge"
model = "halves"
[[pipeline.steps]]
name = "find"
model = "lines"
"""
"""A step of each takes the picture, in different sizes."""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("pipelines")
    add_model(root, "vector", VECTOR)
    add_model(root, "double", DOUBLE)
    add_model(root, "digit", DIGIT, DIGIT_CONFIG)
    add_pipeline(root, "row", ROW)
    add_model(root, "lines", SAME, FIND)
    add_model(root, "halves", BRIGHTEST, HALVES.format(labels='["upper", "lower"]'))
    add_model(root, "turned", BRIGHTEST, HALVES.format(labels='["0", "180"]'))
    add_pipeline(root, "reader", 'task = "pipeline"\n' + READ.format(turn="turned"))
    unsure = HALVES.replace("softmax = false", "sigmoid = true, threshold = 1.0").format(
        labels='["0", "180"]'
    )
    add_model(root, "unsure", BRIGHTEST, unsure)
    add_pipeline(root, "unsure-reader", 'task = "pipeline"\n' + READ.format(turn="unsure"))
    add_pipeline(root, "both", 'task = "pipeline"\n' + BOTH)
    return Settings(models=root, workers=1, queue_size=4, timeout=20, model_control="explicit", warm_up=False)


@pytest.fixture
async def app(settings: Settings) -> AsyncIterator[FastAPI]:
    async with running(settings) as created:
        yield created


@pytest.fixture
async def client(app: FastAPI) -> AsyncIterator[AsyncClient]:
    async with client_of(app) as created:
        yield created


async def test_a_step_takes_tensors_of_an_earlier_one(client: AsyncClient) -> None:
    response = await client.post("/infer?model=row", json={"inputs": [{"data": [[-1, 2, 3], [4, -5, 6]]}]})
    assert response.status_code == 200, response.text
    shown = {output["name"]: output["data"] for output in response.json()["outputs"]}
    assert [[0, 4, 6], [8, 0, 12]] in shown.values()
    names = [layer["name"] for layer in response.json()["trace"]["layers"]]
    assert [name for name in names if "pnnx" not in name] == ["a/relu", "b/twice"]


async def test_crops_that_are_upside_down_are_turned_before_they_are_read(client: AsyncClient) -> None:
    levels = np.zeros((60, 60), np.uint8)
    levels[5:15, 5:55], levels[15:25, 5:55] = 255, 100  # its upper half is bright
    levels[35:45, 5:55], levels[45:55, 5:55] = 100, 255
    content, headers = encoded(Image.fromarray(levels)), {"content-type": "image/png"}
    response = await client.post("/infer?model=reader", content=content, headers=headers)
    assert response.status_code == 200, response.text
    lines = response.json()["predictions"][0]
    assert [line["text"] for line in lines] == ["upper", "upper"]
    assert [line["corners"][0] for line in lines] == [[5.5, 5.5], [5.5, 35.5]]
    assert all(line["probability"] > 0.9 for line in lines)
    names = [layer["name"] for layer in response.json()["trace"]["layers"]]
    assert {name.partition("/")[0] for name in names} == {"find", "turn", "read"}


async def test_the_graph_links_a_step_to_all_that_it_takes(client: AsyncClient) -> None:
    graph = (await client.get("/graph?model=reader")).json()
    (entry,) = (one for one in graph["nodes"] if one["name"] == "read/pnnx_input_0")
    assert {one.partition("/")[0] for one in entry["inputs"]} == {"find", "turn"}


async def test_crops_whose_direction_is_not_classified_are_read_as_they_are(client: AsyncClient) -> None:
    levels = np.zeros((60, 60), np.uint8)
    levels[5:15, 5:55], levels[15:25, 5:55] = 100, 255
    content, headers = encoded(Image.fromarray(levels)), {"content-type": "image/png"}
    response = await client.post("/infer?model=unsure-reader", content=content, headers=headers)
    assert response.status_code == 200, response.text
    assert [line["text"] for line in response.json()["predictions"][0]] == ["lower"]


async def test_a_later_step_places_what_it_finds_on_the_picture(client: AsyncClient) -> None:
    levels = np.zeros((60, 60), np.uint8)
    levels[5:25, 5:55] = 255
    content, headers = encoded(Image.fromarray(levels)), {"content-type": "image/png"}
    responses = [
        await client.post(f"/infer?model={name}", content=content, headers=headers)
        for name in ("both", "lines")
    ]
    found, alone = (response.json()["predictions"] for response in responses)
    assert len(found[0]) == 1
    assert found == alone


async def test_errors_name_the_step(client: AsyncClient) -> None:
    await client.post("/v2/repository/models/double/unload")
    response = await client.post("/infer?model=row", json=number(1))
    assert response.status_code == 503
    assert "'b'" in response.json()["error"]
    await client.post("/v2/repository/models/double/load")
    assert (await client.post("/infer?model=row", json=number(1))).status_code == 200


async def test_a_client_that_leaves_stops_the_step(
    app: FastAPI, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    task = asyncio.create_task(client.post("/infer?model=row", json=number(1)))
    await gate.has_begun()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.open.set()
    async with asyncio.timeout(20):
        while services_of(app).scheduler.running():
            await asyncio.sleep(0)
    assert gate.reasons == ["the client left"]  # of the first step; the second never began
    assert services_of(app).scheduler.waiting() == 0


async def test_the_deadline_is_that_of_all_steps(
    app: FastAPI, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    task = asyncio.create_task(client.post("/infer?model=row", json=number(1)))
    await gate.has_begun()
    expire(services_of(app).scheduler)
    check_error(await task, 504, "timeout")
    gate.open.set()
    async with asyncio.timeout(20):
        while services_of(app).scheduler.running():
            await asyncio.sleep(0)
    assert len(gate.reasons) == 1


async def test_a_pipeline_whose_time_passes_in_the_queue_is_recorded_as_rejected(
    app: FastAPI, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, records, scheduler = Gate(monkeypatch), Records(), services_of(app).scheduler
    monkeypatch.setattr(scheduler, "_observers", [records])
    running = asyncio.create_task(client.post("/infer?model=double", json=number(1)))
    await gate.has_begun()
    late = asyncio.create_task(client.post("/infer?model=row", json=number(1)))
    await waiting_in_queue(app, 1)
    expire(scheduler)
    gate.open.set()
    for task in (running, late):
        check_error(await task, 504, "timeout")
    assert {record.model: record.status for record in records} == {
        "double": CallStatus.CANCELED,
        "vector": CallStatus.REJECTED,
        "row": CallStatus.REJECTED,
    }


async def test_the_timeout_of_a_pipeline_is_that_of_its_steps(
    app: FastAPI, client: AsyncClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(str(settings.models))
    add_pipeline(root, "patient", ROW + "[scheduling]\ntimeout = 600\n")
    assert (await client.post("/v2/repository/models/patient/load")).status_code == 200
    gate = Gate(monkeypatch)
    task = asyncio.create_task(client.post("/infer?model=patient", json=number(1)))
    await gate.has_begun()
    step = next(job for job in jobs_of(services_of(app).scheduler) if job.is_step)
    gate.open.set()
    assert (await task).status_code == 200
    assert step.timeout is not None
    assert 500 < step.timeout <= 600  # its model has 20 s


async def test_faulty_files_say_what_is_expected(client: AsyncClient, settings: Settings) -> None:
    root = Path(str(settings.models))
    step = '[[pipeline.steps]]\nname = "a"\nmodel = "vector"\n'
    cases = [
        (
            "loop",
            '[[pipeline.steps]]\nname = "a"\nmodel = "row"\n',
            "a pipeline; expected a model with weights",
        ),
        ("none", '[[pipeline.steps]]\nname = "a"\nmodel = "vectr"\n', "did you mean 'vector'"),
        (
            "later",
            step + '[[pipeline.steps]]\nname = "b"\nmodel = "digit"\ncrops = "c"\n',
            "an earlier step: a",
        ),
        ("boxes", step + '[[pipeline.steps]]\nname = "b"\nmodel = "digit"\ncrops = "a"\n', "gives no boxes"),
        (
            "turns",
            READ.format(turn="halves"),
            "0, 90, 180, 270",
        ),
        (
            "reads",
            READ.format(turn="turned").replace('name = "turn"', 'name = "other"'),
            "an earlier step: find, other",
        ),
        (
            "joint",
            step + '[[pipeline.steps]]\nname = "b"\nmodel = "digit"\ncombine = true\n',
            "the labels of the detector",
        ),
        ("twice", step + step, "a name of its own"),
        ("empty", "[pipeline]\nsteps = []\n", "steps"),
        (
            "wire",
            step
            + '[[pipeline.steps]]\nname = "b"\nmodel = "double"\ntensors = {pnnx_input_0 = "a/nothing"}\n',
            "a/pnnx_output_0",
        ),
    ]

    async def reason(name: str, config: str) -> str:
        add_pipeline(root, name, 'task = "pipeline"\n' + config)
        response = await client.post(f"/v2/repository/models/{name}/load")
        (root / name / "model.toml").unlink()
        (root / name).rmdir()
        return response.text

    found = [(name, expected, await reason(name, config)) for name, config, expected in cases]

    def check(case: tuple[str, str, str]) -> None:
        assert case[1] in case[2]

    check_each(found, check)
    assert values(await client.post("/infer?model=vector", json=number(2))) == [[2, 2, 2]]
