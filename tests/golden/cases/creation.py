"""Layers that make tensors from a shape.

The exporter folds what depends on no input into a constant, so every case takes a size from its input.
"""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, i64
from tests.golden.case import function as case_of


def function(kind: str, name: str, call: Any) -> LayerCase:
    """Make a case whose one input is of another shape in a second run, and exported for both."""
    other: tuple[Input, ...] = (f32(4, 5),)
    return case_of(kind, name, call, f32(2, 3), also=(other,), export=("inputshape2=[4,5]f32",))


CASES: list[LayerCase] = [
    function("torch.zeros", "plain", lambda torch, x: torch.zeros(x.size(0), 2)),
    function("torch.zeros", "dtype", lambda torch, x: torch.zeros(x.size(0), dtype=torch.int64)),
    function("torch.ones", "plain", lambda torch, x: torch.ones(x.shape)),
    function("torch.ones", "bool", lambda torch, x: torch.ones(x.size(1), dtype=torch.bool)),
    function("torch.full", "float", lambda torch, x: torch.full((x.size(0), 2), 1.5)),
    function("torch.full", "int", lambda torch, x: torch.full((x.size(0),), 3)),
    function("torch.full", "dtype", lambda torch, x: torch.full((x.size(1),), 3, dtype=torch.float64)),
    function("torch.full", "value_of_input", lambda torch, x: torch.full((2,), x.size(0))),
    function("torch.empty", "plain", lambda torch, x: torch.empty(x.size(0), 2).fill_(1.0)),
    function("torch.zeros_like", "plain", lambda torch, x: torch.zeros_like(x)),
    function("torch.zeros_like", "dtype", lambda torch, x: torch.zeros_like(x, dtype=torch.int32)),
    function("torch.ones_like", "plain", lambda torch, x: torch.ones_like(x)),
    function("torch.ones_like", "dtype", lambda torch, x: torch.ones_like(x, dtype=torch.float64)),
    function("torch.full_like", "plain", lambda torch, x: torch.full_like(x, 2)),
    function("torch.full_like", "dtype", lambda torch, x: torch.full_like(x, 2.5, dtype=torch.float64)),
    function("torch.empty_like", "plain", lambda torch, x: torch.empty_like(x).fill_(2.0)),
    function("Tensor.new_zeros", "plain", lambda torch, x: x.new_zeros(x.size(0), 2)),
    function("Tensor.new_zeros", "dtype", lambda torch, x: x.new_zeros(x.size(0), dtype=torch.int64)),
    function("Tensor.new_ones", "plain", lambda torch, x: x.new_ones(x.size(1), x.size(0))),
    function("Tensor.new_ones", "dtype", lambda torch, x: x.new_ones(x.size(0), dtype=torch.bool)),
    function("Tensor.new_empty", "plain", lambda torch, x: x.new_empty(x.size(0)).fill_(3.0)),
    function("torch.arange", "end", lambda torch, x: torch.arange(x.size(0))),
    function("torch.arange", "start_end", lambda torch, x: torch.arange(1, x.size(1) + 4)),
    function("torch.arange", "step", lambda torch, x: torch.arange(x.size(0), 20, x.size(1) - 1)),
    function("torch.arange", "backwards", lambda torch, x: torch.arange(x.size(0), -6, -2)),
    function("torch.arange", "dtype", lambda torch, x: torch.arange(0, x.size(1), dtype=torch.float32)),
    function("torch.arange", "fraction", lambda torch, x: torch.arange(0.5, x.size(1), 0.25)),
    case_of(
        "torch.zeros_like",
        "ints",
        lambda torch, x: torch.zeros_like(x),
        i64(2, 3),
        export=("inputshape2=[4,5]i64",),
    ),
]
