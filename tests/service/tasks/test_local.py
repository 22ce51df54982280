from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from service.config.settings import Settings
from service.config.task_keys import TASK_KEYS
from service.repository.model_loader import ModelLoader
from service.tasks import TASKS, local
from tests.service.models import VECTOR, add_model

CODE = """
from dataclasses import dataclass
from service.tasks import Prediction, Task

@dataclass(frozen=True, slots=True)
class Sum(Prediction):
    value: float

class Adding(Task):
    name = "adding"
    def predict(self, outputs, images, parameters):
        return [[Sum(float(item.sum()))] for item in outputs[0]]
"""


@pytest.fixture(autouse=True)
def registries() -> Iterator[None]:
    with patch.dict(TASKS), patch.dict(TASK_KEYS), patch.dict(local._owners):
        yield


def model(root: Path, code: str, name: str = "sum") -> Path:
    folder = add_model(root, name, VECTOR, 'task = "adding"\n')
    (folder / "task.py").write_text(code)
    return folder


def load(folder: Path, allow_code: bool = True) -> str:
    """Load a model; returns why it cannot be loaded."""
    loader = ModelLoader(Settings(models=folder.parent, allow_code=allow_code, warm_up=False))
    entry = loader.load(folder.name, folder)
    return "" if entry.versions else entry.reason


def test_code_beside_a_model_is_run_where_that_is_allowed(tmp_path: Path) -> None:
    folder = model(tmp_path, CODE)
    assert load(folder) == ""
    (folder / "task.py").write_text(CODE.replace("item.sum()", "item.max()"))
    assert load(folder) == "", "a model may be loaded again after its code was changed"


def test_code_is_not_run_unasked(tmp_path: Path) -> None:
    reason = load(model(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')"), allow_code=False)
    assert "task.py: holds code, which this server does not run" in reason
    assert "--allow-code" in reason
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("x = 1", "defines 0 tasks; expected one class"),
        (CODE + "class Second(Adding):\n    name = 'second'\n", "defines 2 tasks"),
        ("1 / 0", "failed: ZeroDivisionError"),
        ("def", "failed: SyntaxError"),
        (CODE.replace("def predict", "def forecast"), "lacks a name or predict"),
        (CODE.replace('"adding"', '"classification"'), "is called 'classification', as another one is"),
        (CODE.replace('"adding"', '"image"'), "is called 'image'"),
    ],
)
def test_code_that_is_no_task(tmp_path: Path, code: str, text: str) -> None:
    assert text in load(model(tmp_path, code))


def test_two_models_do_not_share_a_name(tmp_path: Path) -> None:
    assert load(model(tmp_path, CODE)) == ""
    assert "is called 'adding', as another one is" in load(model(tmp_path, CODE, "other"))
