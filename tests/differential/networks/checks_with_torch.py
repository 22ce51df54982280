"""Tests of networks in bfloat16 and int8: what rounds otherwise than PyTorch is found, however little it is.

Run: make differential      (or python -m pytest tests/differential/networks/checks_with_torch.py)

They need the extra [train]. `make test` does not collect them, because it has to pass without PyTorch.
"""

from collections import OrderedDict
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import nn

from engine.compiler.contraction import arithmetic
from engine.compiler.emit import weight_files
from engine.dtypes import Array
from engine.quantization.tensor_scale import TensorScale
from engine.quantization.weights import QuantizedWeights, quantize_weights
from tests.differential.networks.rounded import RoundedNetworkRun, run_rounded
from tests.differential.networks.rounding_in_torch import bfloat16, integer_rows, integer_weights, integers
from tests.differential.networks.table import Network


def network() -> Network:
    def construct() -> Any:
        torch.manual_seed(0)
        parts = (
            nn.Conv2d(3, 16, 3, 2),
            nn.ReLU(),
            nn.Conv2d(16, 24, 1),
            nn.MaxPool2d(2),
            nn.Conv2d(24, 8, 3),
        )
        named = {f"part{place}": part for place, part in enumerate(parts)}  # the exporter wants letters
        return nn.Sequential(OrderedDict(named)).eval()

    return Network("small", construct)


def run(precision: str) -> list[RoundedNetworkRun]:
    return list(run_rounded(network(), 0, 1, [precision]))


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_kernels_round_as_pytorch_does(precision: str) -> None:
    (found,) = run(precision)
    assert not found.text
    assert found.tensors >= 3
    assert bool(found.ties[1]) == (precision == "int8")


def truncated(array: Array) -> Array:
    return (np.ascontiguousarray(array, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def off_by_one(weight: Array) -> QuantizedWeights:
    made = quantize_weights(weight)
    changed = made.integers.copy()
    changed.reshape(-1)[5] ^= 1
    return replace(made, integers=changed)


def test_weights_that_are_cut_off_rather_than_rounded_are_found() -> None:
    with patch.object(arithmetic, "bfloat16_bits", truncated):
        (found,) = run("bf16")
    assert "operand" in found.text


def test_a_weight_that_is_off_by_one_is_found() -> None:
    with patch.object(weight_files, "quantize_weights", off_by_one):
        (found,) = run("int8")
    assert "operand" in found.text


def test_rounding_in_pytorch_is_what_is_documented() -> None:
    halves = torch.tensor([0.5, 1.5, -0.5, 1e9, -1e9], dtype=torch.float64)
    assert integers(halves, TensorScale(1.0, 10)).tolist() == [10, 12, 10, 255, 0]
    assert bfloat16(torch.tensor([1 + 2.0**-8, 1 + 3 * 2.0**-8, 3.4e38])).tolist()[:2] == [1, 1 + 2.0**-6]
    assert bfloat16(torch.tensor([3.4e38])).item() == torch.finfo(torch.bfloat16).max
    rows = torch.tensor([[127.0, 0.5, 1.5], [0.0, 0.0, 0.0]], dtype=torch.float64)
    assert integer_rows(rows).tolist() == [[127, 0, 2], [0, 0, 0]]
    assert integer_weights(torch.tensor([[254.0, 1.0, 3.0]])).tolist() == [[254, 0, 4]]
