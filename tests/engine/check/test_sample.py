from pathlib import Path

import numpy as np
import pytest

from engine.check.sample import sample_inputs
from engine.spec import TensorSpec
from tests.engine.models import make_graph


@pytest.mark.parametrize("dtype", ["f32", "i64", "bool", "c64", "u8"])
def test_inputs_of_every_kind(tmp_path: Path, dtype: str) -> None:
    graph = make_graph(tmp_path, f"pnnx.Input in 0 1 a #a=(40){dtype}\npnnx.Output out 1 0 a")
    plan = graph.declared_plan()
    assert plan is not None
    spec = plan.specs["a"]
    assert isinstance(spec, TensorSpec)
    (array,) = sample_inputs(graph, [spec]).values()
    assert (array.shape, array.dtype) == (spec.shape, spec.dtype)
    assert np.unique(array).size > 1
    np.testing.assert_array_equal(array, sample_inputs(graph, [spec])["a"])
    assert not np.array_equal(array, sample_inputs(graph, [spec], seed=1)["a"])


def test_indices_of_embeddings(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a #a=(200)i64
        nn.Embedding e 1 1 a b embedding_dim=2 num_embeddings=7 sparse=False @weight=(7,2)f32
        pnnx.Output out 1 0 b"""
    graph = make_graph(tmp_path, lines, {"e.weight": np.ones((7, 2), np.float32)})
    array = sample_inputs(graph, [TensorSpec((200,), np.dtype(np.int64))])["a"]
    assert set(array.tolist()) == set(range(7))
    assert graph.forward([array])[0].shape == (200, 2)
