"""A package of its own adds a task: installed as pip installs it, and found by its entry point."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from subprocess import run
from unittest.mock import patch

import pytest

from service.config.settings import Settings
from service.config.task_keys import TASK_KEYS
from service.repository.repository import RepositoryError, load_repository
from service.tasks import TASKS
from tests.examples.conftest import serving
from tests.service.models import VECTOR, add_model

pytestmark = pytest.mark.anyio
PACKAGE = Path(__file__).parents[2] / "examples" / "task_package"
CONFIG = 'task = "counting"\n[counting]\nthreshold = 1.0\n'


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package into a folder of its own; returns the folder."""
    source = tmp_path_factory.mktemp("source") / "package"
    copytree(PACKAGE, source)  # building leaves files beside the source
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    run(
        [*command, "--no-index", "--disable-pip-version-check", "--target", str(target), str(source)],
        check=True,
    )
    return target


@pytest.fixture
def package(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(installed)
    with patch.dict(TASKS), patch.dict(TASK_KEYS):
        yield
    sys.modules.pop("kuiper_counting", None)


@pytest.mark.usefixtures("package")
async def test_task_of_a_package_is_served(tmp_path: Path) -> None:
    add_model(tmp_path, "counter", VECTOR, CONFIG)
    body = {"inputs": [{"data": [[0.5, 2, 3], [-1, 0.25, 0]]}]}
    async with serving(tmp_path) as client:
        response = (await client.post("/infer", json=body)).json()
        assert response["predictions"] == [[{"count": 2, "of": 3}], [{"count": 0, "of": 3}]]
        asked = (await client.post("/infer?threshold=0.4", json=body)).json()
        assert [item[0]["count"] for item in asked["predictions"]] == [3, 0]
        refused = await client.post("/infer?threshold=many", json=body)
        assert refused.status_code == 422
        assert "'threshold' is 'many'; expected a valid number" in refused.json()["error"]
        schemas = (await client.get("/openapi.json")).json()["components"]["schemas"]
        assert "Count" in schemas


@pytest.mark.usefixtures("package")
def test_configuration_of_a_package_s_task_is_checked(tmp_path: Path) -> None:
    add_model(tmp_path, "counter", VECTOR, CONFIG + "limit = 3\n")
    with pytest.raises(RepositoryError, match=re.escape("known keys: threshold")):
        load_repository(Settings(models=tmp_path))


def test_without_the_package_there_is_no_such_task(tmp_path: Path) -> None:
    add_model(tmp_path, "counter", VECTOR, CONFIG)
    with pytest.raises(RepositoryError, match="should be 'classification'"):
        load_repository(Settings(models=tmp_path))
