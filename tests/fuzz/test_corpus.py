"""Every stored input of the fuzzers is tried again, and so are a few changed models."""

import warnings
from pathlib import Path
from random import Random

import numpy as np
import pytest

from engine.compiler.lowering import RULES
from tests.cases import check_each
from tests.fuzz.corpus import FOLDER, MAX_BYTES, stored
from tests.fuzz.models import hunt, try_seed
from tests.fuzz.mutation import copied, mutate
from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS
from tests.fuzz.targets.http import http_head
from tests.fuzz.trial import try_graph

FIRST_MODEL, MODELS = 0, 150


@pytest.mark.plants_a_mistake
@pytest.mark.parametrize("target", TARGETS)
def test_stored_inputs_do_no_harm(target: str) -> None:
    inputs = {path.name: path for path in stored(target)}
    check_each(inputs, lambda name: TARGETS[target](inputs[name].read_bytes()))


def test_each_target_has_inputs_and_all_of_them_are_small() -> None:
    assert {folder.name for folder in FOLDER.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for name in TARGETS for path in stored(name)) <= MAX_BYTES


@pytest.mark.plants_a_mistake
def test_changed_models_raise_no_foreign_errors(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        findings = {seed: try_seed(seed, tmp_path) for seed in range(FIRST_MODEL, FIRST_MODEL + MODELS)}
    assert {seed: finding for seed, finding in findings.items() if finding is not None} == {}


def test_a_seed_names_a_model() -> None:
    (origin, graph, inputs), again = mutate(Random(7)), mutate(Random(7))
    assert (origin, graph) == (again[0], again[1])
    for array, twin in zip(inputs, again[2], strict=True):
        np.testing.assert_array_equal(array, twin)


@pytest.mark.plants_a_mistake
def test_a_mistake_of_the_compiler_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = next(seed for seed in seeds() if seed.id == "F.relu-plain")
    graph = copied(seed.graph)
    assert try_graph(graph, seed.inputs, tmp_path) is None

    def rule(_: object) -> None:
        raise IndexError("a mistake")

    monkeypatch.setitem(RULES, "F.relu", rule)
    finding = try_graph(graph, seed.inputs, tmp_path)
    assert finding is not None
    assert "IndexError: a mistake" in finding.kind


def test_a_foreign_error_of_an_expression_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def infer(*_: object) -> None:
        raise KeyError("a mistake")

    monkeypatch.setattr("engine.expression.evaluator._Load.infer", infer)
    with pytest.raises(KeyError, match="a mistake"):
        TARGETS["expression"](b"@0")


def test_a_response_that_is_a_server_error_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.targets.http._SERVER_ERROR", b"HTTP/1.1 200")
    with pytest.raises(AssertionError, match="HTTP/1.1 200"):
        http_head(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")


def test_a_process_that_dies_is_a_finding_and_the_hunt_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    found = list(hunt(3, 2, 60))
    assert [(seed, finding and finding.kind) for seed, finding in found] == [
        (3, "ended with 1"),
        (4, "ended with 1"),
    ]
