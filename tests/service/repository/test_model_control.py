"""Loading, reloading and unloading while models are served."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine import Array
from service.config.override import ConfigOverride
from service.config.settings import Settings
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import IndexLine
from service.repository.repository import ModelRepository, load_repository
from service.repository.version_loader import load_version
from tests.engine.models import write_model
from tests.service.models import DIGIT, UNKNOWN_LAYER, VECTOR, add_model, add_versions

SOON = 20
SCALE = """
    pnnx.Input     in    0 1 0 #0=(1,2)f32
    pnnx.Attribute scale 0 1 1 @data=(1,2)f32 #1=(1,2)f32
    pnnx.Expression mul  2 1 0 1 2 expr=mul(@0,@1) #2=(1,2)f32
    pnnx.Output    out   1 0 2
"""


def write_scale(folder: Path, scale: float) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_model(folder, SCALE, {"scale.data": np.full((1, 2), scale, np.float32)})


def run(model: LoadedModel) -> Array:
    return model.graph.forward([np.ones((1, 2), np.float32)])[0]


def open_repository(root: Path, retire: Callable[[LoadedModel], None] = lambda _: None) -> ModelRepository:
    return load_repository(Settings(models=root, model_control="explicit"), retire)


def refused(call: Callable[[], object]) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        call()
    return caught.value


def lines(repository: ModelRepository) -> list[tuple[str, str | None, str, str]]:
    return [(line.name, line.version, line.state, line.reason) for line in repository.index()]


def test_reload_serves_what_is_there_now_and_retires_what_was(tmp_path: Path) -> None:
    write_scale(tmp_path / "m", 2)
    retired: list[LoadedModel] = []
    repository = open_repository(tmp_path, retired.append)
    before = repository.find("m")
    write_scale(tmp_path / "m", 3)
    assert run(before).tolist() == [[2, 2]]
    repository.load("m")
    assert retired == [before]
    assert run(repository.find("m")).tolist() == [[3, 3]]
    assert run(before).tolist() == [[2, 2]]
    assert repository.generation == 1


def test_successor_is_found_before_the_old_one_is_retired(tmp_path: Path) -> None:
    add_model(tmp_path, "m", VECTOR)
    found: list[LoadedModel] = []
    repository = open_repository(tmp_path, lambda _: found.append(repository.find("m")))
    before = repository.find("m")
    repository.load("m")
    assert found == [repository.find("m")] != [before]
    repository = open_repository(tmp_path, lambda _: found.append(repository.find("m")))
    with pytest.raises(ServiceError, match="is unloaded"):
        repository.unload("m")


def test_new_model_may_be_loaded(tmp_path: Path) -> None:
    add_model(tmp_path, "a", VECTOR)
    repository = open_repository(tmp_path)
    add_versions(tmp_path, "b", {"1": VECTOR, "2": DIGIT})
    assert refused(lambda: repository.find("b")).code == "model_not_found"
    assert lines(repository)[1] == ("b", None, "UNAVAILABLE", "not loaded")
    repository.load("b")
    assert repository.versions("b") == ["1", "2"]
    assert repository.find("b").version == "2"
    assert repository.find("b", "1").version == "1"
    assert [model.name + model.version for model in repository] == ["a1", "b1", "b2"]
    assert [model.name + model.version for model in repository.defaults] == ["a1", "b2"]
    assert len(repository) == 3
    assert lines(repository) == [
        ("a", "1", "READY", ""),
        ("b", "1", "READY", ""),
        ("b", "2", "READY", ""),
    ]


def test_new_version_becomes_the_default(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"9": VECTOR})
    repository = open_repository(tmp_path)
    add_model(folder, "10", VECTOR)
    repository.load("m")
    assert repository.find("m").version == "10"
    repository.load("m", ConfigOverride.model_validate({"version_policy": {"specific": {"versions": [9]}}}))
    assert repository.versions("m") == ["9"]
    repository.load("m")
    assert repository.versions("m") == ["9", "10"]


@pytest.mark.parametrize("version", ["3", "01", "x", "", "\u0661"])
def test_version_that_is_not_served_is_named(tmp_path: Path, version: str) -> None:
    add_versions(tmp_path, "m", {"1": VECTOR, "2": VECTOR})
    error = refused(lambda: open_repository(tmp_path).find("m", version))
    assert (error.status, error.code) == (404, "version_not_found")
    assert error.details == {"model": "m", "version": version, "versions": ["1", "2"]}


def test_load_that_fails_leaves_all_as_it_was(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"1": VECTOR, "2": VECTOR})
    retired: list[LoadedModel] = []
    repository = open_repository(tmp_path, retired.append)
    before = list(repository)
    write_model(folder / "2", UNKNOWN_LAYER)
    error = refused(lambda: repository.load("m"))
    assert (error.status, error.code) == (422, "load_failed")
    assert "version 2: 1 unsupported operator: nn.RELU relu" in error.message
    assert error.message.endswith("(what was served before goes on: version 1, 2)")
    assert str(tmp_path) not in error.message
    assert (list(repository), retired) == (before, [])
    assert [line[2] for line in lines(repository)] == ["READY", "READY"]


def test_first_load_that_fails_is_in_the_index(tmp_path: Path) -> None:
    add_model(tmp_path, "a", VECTOR)
    repository = open_repository(tmp_path)
    folder = add_model(tmp_path, "b", UNKNOWN_LAYER)
    error = refused(lambda: repository.load("b"))
    reason = error.details["reason"]
    assert lines(repository)[1] == ("b", "1", "UNAVAILABLE", reason)
    assert refused(lambda: repository.find("b")).code == "model_broken"
    write_model(folder, VECTOR)
    repository.load("b")
    assert repository.find("b").version == "1"


def test_version_that_is_broken_from_the_start_is_reported(tmp_path: Path) -> None:
    add_versions(tmp_path, "m", {"1": VECTOR, "2": UNKNOWN_LAYER})
    repository = load_repository(Settings(models=tmp_path, skip_broken=True))
    assert repository.find("m").version == "1"
    error = refused(lambda: repository.find("m", "2"))
    assert (error.status, error.code, error.details["version"]) == (503, "model_broken", "2")
    assert error.message.startswith("model 'm', version 2 is broken: 1 unsupported operator")
    assert [line[:3] for line in lines(repository)] == [("m", "1", "READY"), ("m", "2", "UNAVAILABLE")]


def test_unloaded_model_is_served_no_longer(tmp_path: Path) -> None:
    add_versions(tmp_path, "m", {"1": VECTOR, "2": VECTOR})
    add_model(tmp_path, "n", VECTOR)
    retired: list[LoadedModel] = []
    repository = open_repository(tmp_path, retired.append)
    before = [repository.find("m", "1"), repository.find("m", "2")]
    repository.unload("m")
    assert retired == before
    for version in (None, "2", "7"):
        error = refused(lambda version=version: repository.find("m", version))  # type: ignore[misc]  # bound now
        assert (error.status, error.code) == (503, "model_unloaded")
    assert lines(repository)[:2] == [
        ("m", "1", "UNAVAILABLE", "unloaded"),
        ("m", "2", "UNAVAILABLE", "unloaded"),
    ]
    assert repository.names == ["n"]
    assert repository.find(None).name == "n"
    repository.unload("m")
    assert len(retired) == 2
    repository.unload("n")
    assert refused(lambda: repository.find(None)).code == "model_unloaded"
    repository.load("m")
    assert repository.find(None).name == "m"


@pytest.mark.parametrize("name", ["nowhere", "../m", "m/1", "", "x" * 1000])
def test_unknown_name_is_an_error(tmp_path: Path, name: str) -> None:
    add_versions(tmp_path, "m", {"1": VECTOR})
    repository = open_repository(tmp_path)
    for call in (repository.load, repository.unload):
        error = refused(lambda call=call: call(name))  # type: ignore[misc]  # bound now
        assert (error.status, error.code) == (404, "model_not_found")
        assert len(error.message) < 300


def test_folder_that_is_gone_leaves_all_as_it_was(tmp_path: Path) -> None:
    folder = add_model(tmp_path / "models", "m", VECTOR)
    repository = open_repository(folder.parent)
    folder.rename(tmp_path / "away")
    assert refused(lambda: repository.load("m")).code == "model_not_found"
    folder.parent.rmdir()
    assert refused(lambda: repository.load("m")).code == "model_not_found"
    assert repository.find("m").version == "1"
    assert lines(repository) == [("m", "1", "READY", "")]


def test_folder_of_one_model_is_read_again(tmp_path: Path) -> None:
    folder = add_versions(tmp_path, "m", {"1": VECTOR})
    repository = open_repository(folder)
    add_model(folder, "2", VECTOR)
    repository.load("m")
    assert repository.find(None).version == "2"


def test_models_change_only_where_that_is_allowed(models: Path) -> None:
    repository = load_repository(Settings(models=models))
    for call in (repository.load, repository.unload):
        error = refused(lambda call=call: call("pair"))  # type: ignore[misc]  # bound now
        assert (error.status, error.code) == (403, "model_control_off")
    assert repository.find("pair").name == "pair"


class Gate:
    """Stops loads until the test lets them go on, and says which are under way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.entered = threading.Semaphore(0)
        self.running: list[str] = []
        self.max_of_one_name = 0
        self.open = threading.Event()

        def gated(name: str, *args: object, **rest: object) -> LoadedModel:
            self.running.append(name)
            self.max_of_one_name = max(self.max_of_one_name, self.running.count(name))
            self.entered.release()
            assert self.open.wait(SOON)
            self.running.remove(name)
            return load_version(name, *args, **rest)  # type: ignore[arg-type]  # passed on as they come

        monkeypatch.setattr("service.repository.model_loader.load_version", gated)


def test_models_load_side_by_side_and_one_model_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        add_model(tmp_path, name, VECTOR)
    retired: list[LoadedModel] = []
    repository = open_repository(tmp_path, retired.append)
    before = list(repository)
    gate = Gate(monkeypatch)
    with ThreadPoolExecutor(4) as threads:
        loads = [threads.submit(repository.load, name) for name in ("a", "b", "a", "a")]
        assert all(gate.entered.acquire(timeout=SOON) for _ in range(2))
        assert sorted(gate.running) == ["a", "b"]
        assert list(repository) == before
        gate.open.set()
        for load in loads:
            load.result(SOON)
    assert gate.max_of_one_name == 1
    assert len(retired) == 4
    assert not set(retired) & set(repository)


def test_first_load_is_under_way_until_it_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_model(tmp_path, "a", VECTOR)
    repository = open_repository(tmp_path)
    add_model(tmp_path, "b", VECTOR)
    gate = Gate(monkeypatch)
    with ThreadPoolExecutor(1) as threads:
        load = threads.submit(repository.load, "b")
        assert gate.entered.acquire(timeout=SOON)
        assert repository.index()[1] == IndexLine(name="b", state="LOADING")
        error = refused(lambda: repository.find("b"))
        gate.open.set()
        load.result(SOON)
    assert (error.status, error.code, error.headers) == (503, "model_loading", {"Retry-After": "1"})
    assert repository.find("b").version == "1"
