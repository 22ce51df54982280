"""Tests of the random modules: they are drawn from a seed; a difference is found and made small.

Run: make differential      (or python -m pytest tests/differential/modules/checks_with_torch.py)

They need the extra [train]. `make test` does not collect them, because it has to pass without PyTorch.
"""

import numpy as np
import torch
from torch import nn

from tests.differential.comparison import Finding
from tests.differential.modes import modes_of
from tests.differential.modules.drawing import SHAPES, Drawn, outputs, random_module
from tests.differential.modules.layers import Apply, Stack
from tests.differential.modules.running import compare_module, shrunk


def test_seed_and_index_name_a_module() -> None:
    one, other = random_module(3, 5), random_module(3, 5)
    assert str(one.module) == str(other.module) != str(random_module(3, 6).module)
    for run, again in zip(one.runs, other.runs, strict=True):
        for output, same in zip(outputs(one.module, run), outputs(other.module, again), strict=True):
            np.testing.assert_array_equal(output, same)


def test_modules_have_dynamic_axes_and_inputs_that_are_not_finite() -> None:
    drawn = [random_module(1, index) for index in range(20)]
    assert all(len(each.runs) == SHAPES for each in drawn)
    assert all(each.runs[0][0].shape != each.runs[1][0].shape for each in drawn)
    assert any(not np.isfinite(each.runs[0][0]).all() for each in drawn)


def test_module_that_the_exporter_gets_wrong_is_found_and_made_small() -> None:
    """The exporter drops slices of dynamic axes."""
    module = Stack([nn.ReLU(), Apply("x[:, :, 1:]", lambda x: x[:, :, 1:]), nn.Sigmoid()]).eval()
    runs = tuple((np.ones((1, 3, rows, 9), np.float32),) for rows in (8, 10, 12))
    drawn, modes = Drawn("sliced", module, runs), modes_of(0, 1)
    finding = compare_module(drawn, modes)
    assert isinstance(finding, Finding)
    assert finding.kind == "difference"
    small = shrunk(drawn, modes, finding)
    assert [type(layer) for layer in small.module.layers] == [Apply]


def test_random_modules_are_what_pytorch_computes() -> None:
    for index in range(2):
        assert compare_module(random_module(0, index), modes_of(index, 1)) is None
    assert torch.is_grad_enabled()
