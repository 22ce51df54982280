"""Kernels keep to what their calls give them in random graphs."""

import os
from pathlib import Path

import pytest

from engine import KuiperError
from engine.compiler.target import supported_targets
from tests.differential.comparison import opened
from tests.differential.generator import random_case
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
