"""`POST /models/{name}:explain`: its parameters, its pictures, its limits, and the end of a client."""

import asyncio
import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from PIL import Image

from engine import RunStoppedError, RuntimeGraph, StopSignal
from service.config.settings import Settings
from service.inspection.explanation_schemas import ExplanationView
from tests.service.api.responses import bright, check_error
from tests.service.conftest import serving
from tests.service.models import DIGIT, DIGIT_CONFIG, VECTOR, add_model, add_pipeline

pytestmark = pytest.mark.anyio

DIGITS = Path(__file__).parents[3] / "models/digits"
SEVEN = (DIGITS / "samples/7.png").read_bytes()
ROW = """
task = "pipeline"
[[pipeline.steps]]
name = "first"
model = "digit"
"""


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("models")
    add_model(root, "vector", VECTOR)
    add_model(root, "digit", DIGIT, DIGIT_CONFIG)
    add_pipeline(root, "row", ROW)
    (root / "digits").symlink_to(DIGITS)
    return Settings(models=root, workers=1, warm_up=False, timeout=30)


def view(response: Response) -> ExplanationView:
    assert response.status_code == 200, response.text
    return ExplanationView.model_validate(response.json())


async def explain(client: AsyncClient, query: str = "", **headers: str) -> Response:
    return await client.post(f"/models/digits:explain?{query}", content=SEVEN, headers=headers)


async def test_a_picture_is_explained_as_an_array_and_as_a_picture(client: AsyncClient) -> None:
    found = view(await explain(client))
    assert (found.model, found.version, found.method, found.runs) == ("digits", "1", "occlusion", 65)
    assert found.target["label"] == "7"
    assert (found.region, found.layer, found.words) == ([0, 0, 140, 140], None, None)
    assert np.array(found.heatmap).shape == (16, 16)
    overlay = Image.open(io.BytesIO(base64.b64decode(found.overlay or "")))
    assert (overlay.format, overlay.size) == ("PNG", (140, 140))
    red, _, blue = np.asarray(overlay.convert("RGB"), float).transpose(2, 0, 1)
    assert (red - blue).max() > 30  # it is coloured; the drawing is grey


async def test_a_client_that_accepts_a_picture_gets_it(client: AsyncClient) -> None:
    response = await explain(client, accept="image/png")
    assert response.headers["content-type"] == "image/png"
    assert response.content == base64.b64decode(view(await explain(client)).overlay or "")


async def test_parameters_choose_target_and_method(client: AsyncClient) -> None:
    found = view(await explain(client, "method=score-cam&maps=5&target=1"))
    assert (found.method, found.target["label"], found.runs) == ("score-cam", "1", 7)
    assert found.layer is not None
    assert np.array(view(await explain(client, "grid=3")).heatmap).shape == (6, 6)
    second = view(await explain(client, "place=1&grid=2"))
    assert second.target["label"] != "7"


async def test_what_hides_a_digit_s_strokes_matters_and_its_ground_does_not(client: AsyncClient) -> None:
    heatmap = np.array(view(await explain(client)).heatmap)
    ink = np.asarray(Image.open(io.BytesIO(SEVEN)).convert("L").resize((16, 16), Image.Resampling.BOX)) / 255
    strokes = np.abs(ink - np.median(ink)) > 0.2
    assert heatmap[strokes].mean() > 5 * abs(heatmap[~strokes].mean())


async def test_kserve_s_path_explains_one_instance(client: AsyncClient) -> None:
    body = {"instances": [{"b64": base64.b64encode(SEVEN).decode()}]}
    response = await client.post("/v1/models/digits:explain", json=body)
    assert response.status_code == 200, response.text
    (found,) = response.json()["explanations"]
    assert found == (await explain(client)).json()


async def test_an_array_has_no_overlay(client: AsyncClient) -> None:
    body = {"inputs": [{"data": np.random.default_rng(0).random((1, 1, 28, 28)).tolist()}]}
    found = view(await client.post("/models/digits:explain", json=body))
    assert (found.overlay, found.region) == (None, [0, 0, 28, 28])
    response = await client.post("/models/digits:explain", json=body, headers={"accept": "image/png"})
    check_error(response, 422, "not_drawable")


@pytest.mark.parametrize(
    ("path", "query", "code"),
    [
        ("digits", "grid=1", "invalid_parameter"),
        ("digits", "grid=33", "invalid_parameter"),
        ("digits", "maps=513", "invalid_parameter"),
        ("digits", "method=gradient", "invalid_parameter"),
        ("digits", "method=words", "invalid_parameter"),
        ("digits", "method=score-cam&layer=none", "invalid_parameter"),
        ("digits", "target=ten", "no_such_prediction"),
        ("digits", "timeout=0", "invalid_parameter"),
        ("digits", "timeout=inf", "invalid_parameter"),
        ("digits", "timeout=soon", "invalid_parameter"),
        ("digits", "place=10", "no_such_prediction"),
        ("row", "", "not_explainable"),
    ],
)
async def test_bad_parameters_are_refused(client: AsyncClient, path: str, query: str, code: str) -> None:
    check_error(await client.post(f"/models/{path}:explain?{query}", content=SEVEN), 422, code)


async def test_other_models_and_inputs_are_refused(client: AsyncClient) -> None:
    raw = await client.post("/models/vector:explain", json={"inputs": [{"data": [[1, 2, 3]]}]})
    check_error(raw, 422, "not_explainable")
    two = base64.b64encode(SEVEN).decode()
    check_error(
        await client.post("/models/digits:explain", json={"images": [two, two]}), 422, "not_explainable"
    )
    check_error(await client.post("/models/none:explain", content=SEVEN), 404, "model_not_found")
    check_error(await client.post("/models/digits:explain", content=b""), 400, "empty_body")


async def test_small_inputs_have_fewer_parts(client: AsyncClient) -> None:
    found = view(await client.post("/models/digit:explain", content=bright(4)))
    assert found.target["label"] == "p4"
    assert np.array(found.heatmap).shape[0] >= 1


class Endless:
    """A run of a model that lasts until it is stopped."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.reason: str | None = None

    def __call__(self, *_: object, stop: StopSignal, **__: object) -> Any:
        self.loop.call_soon_threadsafe(self.begun.set)
        while (reason := stop()) is None:
            pass
        self.reason = reason
        raise RunStoppedError(reason)


async def test_a_client_that_leaves_stops_the_runs(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = Endless()
    monkeypatch.setattr(RuntimeGraph, "run", endless)
    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait({"type": "http.request", "body": SEVEN, "more_body": False})
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": "/models/digits:explain",
        "raw_path": b"/models/digits:explain",
        "query_string": b"",
        "headers": [(b"host", b"test"), (b"content-length", str(len(SEVEN)).encode())],
        "client": ("127.0.0.1", 1),
        "server": ("test", 80),
    }
    call = asyncio.create_task(app(scope, messages.get, send))
    async with asyncio.timeout(20):
        await endless.begun.wait()
        messages.put_nowait({"type": "http.disconnect"})
        await call
    assert endless.reason == "the client left"


@pytest.mark.parametrize(("query", "seconds"), [("", 1.0), ("timeout=0.5", 0.5), ("timeout=60", 1.0)])
async def test_runs_end_when_the_time_of_the_server_or_of_the_request_is_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, query: str, seconds: float
) -> None:
    async with serving(settings.model_copy(update={"timeout": 1.0})) as client:
        monkeypatch.setattr(RuntimeGraph, "run", Endless())
        assert check_error(await explain(client, query), 504, "timeout")["timeout"] == seconds
