"""Tests of random networks of quantized layers: what gives other results than PyTorch is found.

Run: make differential      (or python -m pytest tests/differential/quantized/checks_with_torch.py)

They need the extra [train]. `make test` does not collect them, because it has to pass without PyTorch.
"""

from unittest.mock import patch

import numpy as np

from engine.dtypes import Array
from tests.differential.quantized import running
from tests.differential.quantized.drawing import DrawnNetwork, draw_network
from tests.differential.quantized.running import run_quantized


def test_seed_and_index_name_a_network() -> None:
    one, other = draw_network(3, 5), draw_network(3, 5)
    assert one.lines == other.lines != draw_network(3, 6).lines
    assert all(np.array_equal(one.state[name], array) for name, array in other.state.items())


def test_kernels_compute_what_pytorch_does() -> None:
    for run in run_quantized(0, 1):
        assert not run.text
        assert run.tensors


def test_a_weight_that_is_off_by_one_is_found() -> None:
    def changed(seed: int, index: int) -> DrawnNetwork:
        drawn = draw_network(seed, index)
        weight: Array = next(array for array in drawn.state.values() if array.dtype == np.int8)
        weight.reshape(-1)[3] ^= 1
        return drawn

    with patch.object(running, "draw_network", changed):
        assert any("operand" in run.text for run in run_quantized(0, 1))
