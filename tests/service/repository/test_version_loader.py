"""How the settings of the server and of a model decide how it is loaded."""

from pathlib import Path
from typing import Any

import pytest

from engine import BuildTimeoutError, RuntimeGraph
from service.config.limits import Limits
from service.config.settings import Settings
from service.repository.version_loader import LoadOptions, load_version
from tests.service.models import VECTOR, add_model


def test_options_are_those_of_the_settings() -> None:
    settings = Settings(
        max_body_bytes=1,
        warm_up=False,
        max_run_bytes=2,
        max_batch_size=3,
        threads=4,
        backend="numpy",
        precision="bf16",
    )
    assert LoadOptions.from_settings(settings) == LoadOptions(
        limits=Limits(body_bytes=1),
        warm_up=False,
        max_run_bytes=2,
        max_batch_size=3,
        threads=4,
        backend="numpy",
        precision="bf16",
    )


def test_a_model_that_takes_too_long_to_build_is_broken(tmp_path: Path) -> None:
    folder = add_model(tmp_path, "m", VECTOR)
    with pytest.raises(BuildTimeoutError, match=r"^building timed out at .* of max_build_seconds$"):
        load_version("m", folder, LoadOptions(max_build_seconds=1e-9))


@pytest.mark.parametrize(
    ("config", "precision"),
    [("", "bf16"), *((f'precision = "{name}"\n', name) for name in ("f32", "int4", "auto"))],
)
def test_model_may_set_its_own_precision(tmp_path: Path, config: str, precision: str) -> None:
    folder = add_model(tmp_path, "m", VECTOR, config + "tolerance = 0.25\n")
    graph = load_version("m", folder, LoadOptions(precision="bf16")).graph
    assert graph.precision.value == precision


@pytest.mark.parametrize(("config", "threads"), [("", 3), ("[scheduling]\nthreads = 2\n", 2)])
def test_model_may_set_its_own_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: str, threads: int
) -> None:
    given: list[int] = []

    def make_graph(*files: Path, threads: int, **options: Any) -> RuntimeGraph:
        given.append(threads)
        return RuntimeGraph(*files, threads=threads, **options)

    monkeypatch.setattr("service.repository.version_loader.RuntimeGraph", make_graph)
    load_version("m", add_model(tmp_path, "m", VECTOR, config), LoadOptions(threads=3))
    assert given == [threads]
