"""The short form: some random graphs on every vector width, with several threads and layouts of inputs."""

from pathlib import Path

import numpy as np
import pytest

from engine import KuiperError
from engine.run.trace import TraceLevel
from tests.differential.comparison import compare, forward, opened
from tests.differential.generator import random_case
from tests.differential.modes import modes_of

SEED = 10
COUNT = 80


@pytest.mark.parametrize("index", range(COUNT))
def test_random_graph_gives_on_every_backend_what_it_gives_on_numpy(index: int) -> None:
    case = random_case(SEED, index)
    finding = compare(case, modes_of(index, 1))
    assert finding is None, f"{finding.text}\n{case}"


@pytest.mark.parametrize("index", range(10))
def test_trace_of_a_random_graph_reports_every_operator_once(tmp_path: Path, index: int) -> None:
    case = random_case(SEED, index)
    graph = opened(case, tmp_path, "native")
    trace = graph.run(case.arrays(0), trace=TraceLevel.ON).trace
    assert trace is not None
    assert sorted(layer.name for layer in trace.layers) == sorted(
        operator.name for operator in graph.operators
    )


def test_seed_and_index_name_a_graph() -> None:
    assert random_case(SEED, 3) == random_case(SEED, 3)
    assert str(random_case(SEED, 3)) != str(random_case(SEED, 4))
    one, other = random_case(SEED, 3), random_case(SEED, 3)
    for array, again in zip(one.arrays(0), other.arrays(0), strict=True):
        np.testing.assert_array_equal(array, again)


def test_random_graphs_run_as_they_are_drawn(tmp_path: Path) -> None:
    outcomes = [
        forward(opened(random_case(SEED, i), tmp_path, "numpy"), random_case(SEED, i).arrays(0))
        for i in range(20)
    ]
    assert not any(isinstance(outcome, KuiperError) for outcome in outcomes)
