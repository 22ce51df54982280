"""Kernels keep to what their calls give them in random graphs."""

import os
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import RuntimeGraph
from engine.compiler.target import Target, supported_targets
from tests.engine.compiler.random_graphs import RandomGraph, graphs
from tests.engine.models import write_model
from tests.sanitizer.run import run_checked

EXAMPLES = int(os.environ.get("TEST_SANITIZER_EXAMPLES", "30"))


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(graphs(), st.sampled_from(supported_targets()), st.integers(1, 3))
def test_random_graph(drawn: tuple[RandomGraph, list[str]], target: Target, threads: int) -> None:
    graph, leaving = drawn
    lines = [*graph.lines, *(f"pnnx.Output out{place} 1 0 {name}" for place, name in enumerate(leaving))]
    with tempfile.TemporaryDirectory() as folder:
        param = write_model(Path(folder), "\n".join(lines), graph.attributes)
        opened = RuntimeGraph(param, backend="numpy")
        opened.build()
    random = np.random.default_rng(0)
    run_checked(
        opened, [random.standard_normal(shape).astype(np.float32) for shape in graph.inputs], target, threads
    )
