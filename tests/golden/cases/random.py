"""Layers that draw random numbers; times zero, so that only shape and dtype are compared.

The exporter folds what depends on no input into a constant, so every case takes a size from its input.
"""

from typing import Any

from tests.golden.case import Input, LayerCase, f32
from tests.golden.case import function as case_of


def function(kind: str, name: str, call: Any) -> LayerCase:
    """Make a case whose one input is of another shape in a second run, and exported for both."""
    other: tuple[Input, ...] = (f32(4, 5),)
    return case_of(kind, name, call, f32(2, 3), also=(other,), export=("inputshape2=[4,5]f32",))


CASES: list[LayerCase] = [
    function("torch.randn", "plain", lambda torch, x: torch.randn(x.size(0), 2) * 0),
    function("torch.randn", "double", lambda torch, x: torch.randn(x.size(1), dtype=torch.float64) * 0),
    function("torch.randn_like", "plain", lambda torch, x: torch.randn_like(x) * 0),
    function("torch.randn_like", "double", lambda torch, x: torch.randn_like(x, dtype=torch.float64) * 0),
    function("torch.normal", "in_place", lambda torch, x: torch.zeros_like(x).normal_(2.0, 0.5) * 0),
]
