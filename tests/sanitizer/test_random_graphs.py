"""Kernels keep to what their calls give them in random graphs, and in those that once came out wrong."""

import os
from pathlib import Path

import pytest

from engine import KuiperError
from engine.compiler.target import Target, supported_targets
from tests.differential.case import Case, named_cases
from tests.differential.comparison import opened
from tests.differential.generator import random_case
from tests.engine.compiler.harness import every_target
from tests.sanitizer.run import run_checked

SEED = int(os.environ.get("TEST_SANITIZER_SEED", "11"))
COUNT = int(os.environ.get("TEST_SANITIZER_GRAPHS", "40"))


@pytest.mark.parametrize("index", range(COUNT))
def test_random_graph(tmp_path: Path, index: int) -> None:
    case, targets = random_case(SEED, index), supported_targets()
    try:
        graph = opened(case, tmp_path, "numpy")
        inputs = case.arrays(0)
        graph.forward(inputs)
    except KuiperError:
        return  # such a graph is refused by every backend
    run_checked(graph, inputs, targets[index % len(targets)], threads=1 + index % 3)


@every_target
@pytest.mark.parametrize("case", named_cases(), ids=lambda case: case.name)
def test_named_case(tmp_path: Path, case: Case, target: Target) -> None:
    graph = opened(case, tmp_path, "numpy")
    for run in range(len(case.runs)):
        run_checked(graph, case.arrays(run), target, threads=3)
