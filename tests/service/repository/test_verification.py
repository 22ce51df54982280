"""Compiled programs that numpy contradicts: reported in the log, at /models and in the metrics, and never served."""

import json
import logging
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from httpx import ASGITransport, AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from engine.compiler.emit.jit import KernelCache
from engine.compiler.kernels.elementwise import Elementwise
from service.app import create_app
from service.config.settings import Settings
from service.telemetry.logging import JsonFormatter
from tests.service.models import VECTOR, add_model

pytestmark = pytest.mark.anyio

BODY = {"inputs": [{"shape": [1, 3], "dtype": "float32", "data": [1.0, -2.0, 3.0]}]}

NONE = {"recalled": 0, "unchecked": 0, "refused": [], "refused_count": 0}


@pytest.fixture
def wrong_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Elementwise kernels that write nothing, and are not taken from those that others use."""
    monkeypatch.setattr("engine.compiler.program.assembler.cache", KernelCache())
    monkeypatch.setattr(Elementwise, "emit", lambda kernel, e: None)


@pytest.fixture
def log() -> Iterator[StringIO]:
    """The warnings that are logged, as JSON."""
    handler = logging.StreamHandler(StringIO())
    handler.setFormatter(JsonFormatter())
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    yield handler.stream
    logging.getLogger().removeHandler(handler)


async def serve(root: Path, **settings: Any) -> dict[str, Any]:
    """Serve one model, ask it, and return what there is to see: response, model, count of refusals."""
    add_model(root, "m", VECTOR)
    app = create_app(Settings(models=root, workers=1, **settings))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        response = (await client.post("/infer", json=BODY)).json()
        metrics = (await client.get("/metrics")).text
        refused = [
            sample.value
            for family in text_string_to_metric_families(metrics)
            for sample in family.samples
            if sample.name == "kuiper_program_refused_total"
        ]
        model = (await client.get("/models/m")).json()
    return {"response": response, "model": model, "refused": refused}


async def test_sound_programs_are_checked_and_used(tmp_path: Path) -> None:
    seen = await serve(tmp_path)
    assert seen["model"]["verification"] == {"checked": 1} | NONE
    assert seen["refused"] == [0]
    assert seen["response"]["trace"]["layers"][1]["backend"] == "native"


@pytest.mark.plants_a_mistake
@pytest.mark.usefixtures("wrong_kernels")
async def test_wrong_program_is_reported_and_numpy_runs(tmp_path: Path, log: StringIO) -> None:
    seen = await serve(tmp_path)
    assert seen["response"]["outputs"][0]["data"] == [[1, 0, 3]]
    assert seen["response"]["trace"]["layers"][1]["backend"] == "numpy"
    assert seen["refused"] == [1]
    (refusal,) = seen["model"]["verification"]["refused"]
    assert (refusal["inputs"], refusal["operator"], refusal["type"]) == ([[1, 3]], "relu", "nn.ReLU")
    assert refusal["reason"]
    (line,) = [line for line in log.getvalue().splitlines() if "nn.ReLU relu" in line]
    entry = json.loads(line)
    assert (entry["level"], entry["model"], entry["version"]) == ("warning", "m", "1")
