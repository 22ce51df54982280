"""Compiled graphs refuse what numpy refuses, with the same error."""

from pathlib import Path

import numpy as np
import pytest

from engine import InputError, KuiperError, LayerError
from engine.dtypes import Array
from tests.engine.compiler.program.parity import LINEAR, WEIGHTS, X, open_both, text


@pytest.mark.parametrize(
    ("inputs", "error", "message"),
    [
        ([X.astype(np.float64)], InputError, "input 'in', operand 'a': dtype is f64; expected f32"),
        ([X[0]], InputError, "input 'in', operand 'a': shape (3, 4) has 2 dimensions; expected 3"),
        ([X[:, :, :3]], LayerError, "nn.Linear fc, operand 'a' (input, (2,3,3)f32): size 3 in dimension 2"),
        ([X[:, :0, :3]], LayerError, "nn.Linear fc, operand 'a' (input, (2,0,3)f32): size 3 in dimension 2"),
        ([X, X], InputError, "inputs: got 2; expected 1 (in a: (2,3,4)f32)"),
    ],
    ids=["dtype", "rank", "extent", "extent of no elements", "count"],
)
def test_inputs_are_refused_by_the_same_message(
    tmp_path: Path, inputs: list[Array], error: type[KuiperError], message: str
) -> None:
    lines = text(f"{LINEAR}|F.relu r 1 1 b c $input=b|pnnx.Output o 1 0 c")
    messages = set()
    for graph in open_both(tmp_path, lines, {"fc.weight": WEIGHTS["fc.weight"]}):
        with pytest.raises(error) as caught:
            graph.forward(inputs)
        messages.add(str(caught.value))
    (reported,) = messages
    assert reported.startswith(message)


def test_errors_that_only_a_run_can_show_are_the_same(tmp_path: Path) -> None:
    lines = """
        pnnx.Input in 0 1 a #a=(2,3,4)f32
        F.relu r 1 1 a b $input=a
        pnnx.Expression k 1 1 a k expr=gt(@0,0)
        torch.masked_select m 2 1 b k c $input=b $mask=k
        Tensor.reshape s 1 1 c d shape=(5,5) $input=c
        F.relu q 1 1 d e $input=d
        pnnx.Output o 1 0 e
    """
    messages = set()
    for graph in open_both(tmp_path, lines):
        with pytest.raises(LayerError) as caught:
            graph.forward([X])
        messages.add(str(caught.value))
    (reported,) = messages
    assert (
        reported
        == "Tensor.reshape s, 'shape': got (5, 5); expected a shape of 16 elements, with at most one -1"
    )
