"""Words of a file that a layer does not know have no effect, and that is said."""

from pathlib import Path

import numpy as np
import pytest

from tests.engine.models import make_graph

ENDS = "pnnx.Input in 0 1 a #a=(2,3)f32\n{line}\npnnx.Output out 1 0 b"


def warnings_of(folder: Path, line: str) -> tuple[str, ...]:
    return make_graph(folder, ENDS.format(line=line)).warnings


def test_unknown_parameter_is_said_to_have_no_effect(tmp_path: Path) -> None:
    (warning,) = warnings_of(tmp_path, "F.relu r 1 1 a b $input=a rounding=floor")
    assert warning == "F.relu r: the parameter rounding=floor is not known to its layer and has no effect"


@pytest.mark.parametrize(
    "word", ["newer=None", "newer=False", "memory_format=torch.channels_last", "sparse=True"]
)
def test_parameter_that_changes_nothing_is_not_worth_a_word(tmp_path: Path, word: str) -> None:
    assert warnings_of(tmp_path, f"torch.clone r 1 1 a b $input=a {word}") == ()


def test_inputs_of_unknown_names_are_said_to_be_taken_in_order(tmp_path: Path) -> None:
    lines = "Tensor.permute t 1 1 a t dims=(1,0) $input=a\n"
    (warning,) = warnings_of(tmp_path, lines + "torch.matmul m 2 1 a t b $left=a $right=t")
    assert "inputs named 'left', 'right' are not known to its layer" in warning


def test_initial_state_is_taken_by_its_name_in_onnx(tmp_path: Path) -> None:
    """The cell state alone is not taken for the hidden one."""
    weights = {
        "r.weight_ih_l0": np.full((8, 3), 0.1, np.float32),
        "r.weight_hh_l0": np.full((8, 2), 0.2, np.float32),
    }
    lines = """
        pnnx.Input in 0 1 a #a=(1,1,3)f32
        pnnx.Input state 0 1 s #s=(1,1,2)f32
        nn.LSTM r 2 1 a s b bias=False num_layers=1 outputs=c_n {names} @weight_ih_l0=(8,3)f32 @weight_hh_l0=(8,2)f32
        pnnx.Output out 1 0 b"""
    given = [np.ones((1, 1, 3), np.float32), np.full((1, 1, 2), 3, np.float32)]
    (torch_words,), (onnx_words,), (hidden,) = (
        make_graph(tmp_path, lines.format(names=names), weights).forward(given)
        for names in ("$input=a $cx=s", "$input=a $initial_c=s", "$input=a $initial_h=s")
    )
    np.testing.assert_array_equal(torch_words, onnx_words)
    assert not np.allclose(torch_words, hidden)
