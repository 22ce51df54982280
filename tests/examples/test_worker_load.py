from pathlib import Path

import pytest

from tests.examples.conftest import Extend, serving
from tests.service.models import VECTOR, add_model

pytestmark = pytest.mark.anyio


async def test_metric_is_exposed(tmp_path: Path, extend: Extend) -> None:
    extend("worker_load")
    add_model(tmp_path, "vector", VECTOR)
    async with serving(tmp_path) as client:
        lines = (await client.get("/metrics")).text.splitlines()
        assert "kuiper_worker_load 0.0" in lines
        assert "# TYPE kuiper_worker_load gauge" in lines


async def test_without_the_example_there_is_no_such_metric(tmp_path: Path) -> None:
    add_model(tmp_path, "vector", VECTOR)
    async with serving(tmp_path) as client:
        assert "kuiper_worker_load" not in (await client.get("/metrics")).text
