"""Linear layers of all proportions of rows, inputs and outputs against numpy, on any number of threads the same."""

from pathlib import Path

import numpy as np
import pytest

from engine.compiler.emit.target import host_target
from engine.compiler.selection.machine import machine_of
from tests.engine.compiler.program.parity import left_to_numpy
from tests.engine.models import make_graph

CACHE = machine_of(host_target()).cache


@pytest.mark.parametrize(
    ("rows", "inputs", "outputs"),
    [
        (1, 70, 130),
        (7, 33, 500),
        (128, 96, 288),
        (197, 48, 48),
        (130, 40, 1000),
        (400, 24, 1),
        (2 * CACHE // 4 // 512, 512, 33),
        (CACHE // 4 // 64 + 3, 64, 200),
    ],
)
def test_any_proportions(tmp_path: Path, rows: int, inputs: int, outputs: int) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((rows, inputs)).astype(np.float32)
    weights = {
        "l.weight": random.standard_normal((outputs, inputs)).astype(np.float32),
        "l.bias": random.standard_normal(outputs).astype(np.float32),
    }
    text = "\n".join(
        [
            f"pnnx.Input i 0 1 x #x=({rows},{inputs})f32",
            f"nn.Linear l 1 1 x y bias=True in_features={inputs} out_features={outputs} "
            f"@weight=({outputs},{inputs})f32 @bias=({outputs})f32",
            "F.relu r 1 1 y z $input=y",
            "pnnx.Output o 1 0 z",
        ]
    )
    plain, *compiled = (
        make_graph(tmp_path, text, weights, backend=backend, threads=threads)
        for backend, threads in (("numpy", 1), ("native", 1), ("native", 2), ("native", 3), ("native", 7))
    )
    (expected,), (first,) = plain.forward([x]), compiled[0].forward([x])
    np.testing.assert_allclose(first, expected, rtol=1e-4, atol=1e-4)
    assert left_to_numpy(compiled[0], [x]) == set()
    for graph in compiled[1:]:
        assert np.array_equal(graph.forward([x])[0], first)
