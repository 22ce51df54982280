"""In which order models are loaded at the start, and how many at a time."""

import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from service.config.machine import Machine
from service.config.override import ConfigOverride
from service.config.settings import Settings
from service.repository.load_progress import LoadProgress, LoadStoppedError, Step, go_on
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import ModelEntry
from service.repository.model_loader import ModelLoader
from service.repository.repository import load_repository
from service.repository.side_by_side import load_side_by_side, max_at_once
from tests.service.models import VECTOR, add_model

SOON = 20


class Loader(ModelLoader):
    """Records the names of the models that it is to load; the first loads wait for each other."""

    def __init__(self, together: int) -> None:
        super().__init__(Settings())
        object.__setattr__(self, "names", [])
        object.__setattr__(self, "barrier", threading.Barrier(together))

    names: list[str]
    barrier: threading.Barrier

    def load(
        self,
        name: str,
        folder: Path,
        override: ConfigOverride | None = None,
        step: Step = go_on,
        kept: Mapping[str, LoadedModel] | None = None,
    ) -> ModelEntry:
        self.names.append(name)
        step(f"reading {name}")
        if len(self.names) <= self.barrier.parties:
            self.barrier.wait(SOON)
        return ModelEntry(name)


def folders(root: Path, **weights: int) -> dict[str, Path]:
    for name, size in weights.items():
        folder = root / name / "1" if size % 2 else root / name
        folder.mkdir(parents=True)
        (folder / "m.bin").write_bytes(bytes(size))
    return {name: root / name for name in weights}


def test_small_models_come_first(tmp_path: Path) -> None:
    loader = Loader(1)
    found = folders(tmp_path, a=30, b=11, c=20) | {"gone": tmp_path / "gone"}
    entries = load_side_by_side(loader, found, 1, LoadProgress())
    assert loader.names == ["gone", "b", "c", "a"]
    assert list(entries) == ["a", "b", "c", "gone"]


def test_models_are_loaded_side_by_side_and_counted(tmp_path: Path) -> None:
    progress = LoadProgress()
    load_side_by_side(Loader(2), folders(tmp_path, a=1, b=2, c=3), 2, progress)
    assert str(progress.state) == "3 of 3 models"


@pytest.mark.parametrize(
    ("cpus", "memory", "most"), [(2, 1 << 40, 2), (64, 1 << 30, 4), (8, 1 << 20, 1), (3, None, 3)]
)
def test_cores_and_memory_bound_what_is_loaded_at_the_same_time(
    cpus: int, memory: int | None, most: int
) -> None:
    assert max_at_once(Machine(cpus, "", memory, "")) == most


def test_two_hundred_models_are_loaded(tmp_path: Path) -> None:
    for number in range(200):
        add_model(tmp_path, f"m{number}", VECTOR)
    repository = load_repository(Settings(models=tmp_path, backend="numpy", warm_up=False))
    assert len(repository) == 200


def test_stop_leaves_the_others_alone(tmp_path: Path) -> None:
    loader, progress = Loader(1), LoadProgress()
    progress.stop()
    with pytest.raises(LoadStoppedError):
        load_side_by_side(loader, folders(tmp_path, a=1, b=2), 1, progress)
    assert progress.state.loaded == 0
