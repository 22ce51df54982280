"""Distances between vectors."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import LayerCase, f32, function, tensor


def distance(**arguments: Any) -> Callable[..., Any]:
    """Call torch.nn.functional.pairwise_distance(x, y, **arguments)."""
    return lambda torch, x, y: torch.nn.functional.pairwise_distance(x, y, **arguments)


TYPE = "F.pairwise_distance"
HALF = {"rtol": 2e-3, "atol": 2e-3}

CASES: list[LayerCase] = [
    function(TYPE, "plain", distance(), f32(3, 5), f32(3, 5), also=((f32(2, 7), f32(2, 7)),)),
    function(TYPE, "vector", distance(), f32(5), f32(5)),
    function(TYPE, "keepdim", distance(keepdim=True), f32(2, 3, 5), f32(2, 3, 5)),
    function(TYPE, "broadcast", distance(), f32(2, 3, 5), f32(5)),
    function(TYPE, "p1_eps", distance(p=1, eps=0.5), f32(3, 5), f32(3, 5)),
    function(TYPE, "p3", distance(p=3.0), f32(2, 3, 4), f32(3, 4)),
    function(TYPE, "p_half", distance(p=0.5), f32(3, 4), f32(3, 4)),
    function(TYPE, "p_negative", distance(p=-2.0), f32(3, 4), f32(3, 4)),
    function(TYPE, "p_inf", distance(p=float("inf")), f32(3, 4), f32(3, 4)),
    function(TYPE, "p0", distance(p=0.0, eps=0.0), f32(3, 4), f32(3, 4)),
    function(TYPE, "f16", distance(), tensor("f16", 3, 4), tensor("f16", 3, 4), **HALF),
    function(TYPE, "f64", distance(), tensor("f64", 3, 4), tensor("f64", 3, 4)),
    function(TYPE, "mixed", distance(), f32(3, 4), tensor("f64", 3, 4)),
    function(
        TYPE, "i64", distance(), tensor("i64", 3, 4, low=-5, high=5), tensor("i64", 3, 4, low=-5, high=5)
    ),
    function(TYPE, "c64", distance(), tensor("c64", 3, 4), tensor("c64", 3, 4)),
]
