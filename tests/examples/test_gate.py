from pathlib import Path

import numpy as np
import pytest

from engine import ArgumentError, TensorSpec, UnsupportedOperatorError
from tests.engine.models import make_graph, write_model
from tests.examples.conftest import Extend, serving

LINES = """
pnnx.Input  pnnx_input_0  0 1 0 #0=(1,2,3)f32
gates.Gate  gate          1 1 0 1 @weight=(2)f32 #0=(1,2,3)f32 #1=(1,2,3)f32
nn.ReLU     relu          1 1 1 2 #1=(1,2,3)f32 #2=(1,2,3)f32
pnnx.Output pnnx_output_0 1 0 2
"""
WEIGHT = np.array([0, 2], np.float32)
X = np.array([[[1, -2, 3], [-1, 2, 0]]], np.float32)
EXPECTED = np.maximum(X / (1 + np.exp(-X * WEIGHT[:, None])), 0)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_operator_runs_in_a_graph(tmp_path: Path, extend: Extend, backend: str) -> None:
    extend("gate")
    graph = make_graph(tmp_path, LINES, {"gate.weight": WEIGHT}, backend=backend)
    np.testing.assert_allclose(graph(X)[0], EXPECTED, rtol=1e-6)


def test_shape_rule_refuses_other_weights(extend: Extend) -> None:
    example = extend("gate")
    specs = TensorSpec((1, 3, 3), np.dtype(np.float32)), TensorSpec((2,), np.dtype(np.float32))
    with pytest.raises(ArgumentError, match="one for each channel"):
        example.infer_gate(*specs)


@pytest.mark.anyio
async def test_operator_is_served(tmp_path: Path, extend: Extend) -> None:
    extend("gate")
    folder = tmp_path / "gated"
    folder.mkdir()
    write_model(folder, LINES, {"gate.weight": WEIGHT})
    async with serving(tmp_path) as client:
        response = (await client.post("/infer", json={"inputs": [{"data": X.tolist()}]})).json()
    np.testing.assert_allclose(response["outputs"][0]["data"], EXPECTED, rtol=1e-6)
    assert {"name": "gate", "type": "gates.Gate", "backend": "numpy"}.items() <= response["trace"]["layers"][
        1
    ].items()


def test_without_the_example_there_is_no_such_operator(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"gates\.Gate"):
        make_graph(tmp_path, LINES, {"gate.weight": WEIGHT})
