"""Softmax and its relatives."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import LayerCase, f32, function, module, tensor


def functional(name: str, **arguments: Any) -> Callable[[Any, Any], Any]:
    """Call torch.nn.functional.NAME(x, **arguments)."""
    return lambda torch, x: getattr(torch.nn.functional, name)(x, **arguments)


def family(module_type: str, type_name: str) -> list[LayerCase]:
    """Make the cases of a module and its function."""
    class_name, name = module_type.removeprefix("nn."), type_name.removeprefix("F.")
    half = {"rtol": 2e-3, "atol": 2e-3}
    double = {"rtol": 1e-12, "atol": 1e-12}

    def build(dim: int) -> Callable[[Any], Any]:
        return lambda nn: getattr(nn, class_name)(dim=dim)

    return [
        module(module_type, "last", build(-1), f32(3, 7, low=-20, high=20), also=((f32(5, 2),),)),
        module(module_type, "dim0", build(0), f32(4, 3, 2)),
        module(module_type, "dim1", build(1), f32(2, 5, 3, 2), also=((f32(1, 3, 4, 1),),)),
        module(module_type, "vector", build(0), f32(9)),
        function(type_name, "dim2", functional(name, dim=2), f32(2, 3, 5, low=-50, high=50)),
        function(type_name, "dim_minus2", functional(name, dim=-2), f32(2, 3, 5, 2, 3)),
        function(type_name, "default_rank3", functional(name), f32(4, 3, 2)),
        function(type_name, "default_rank4", functional(name), f32(2, 4, 3, 2)),
        function(type_name, "f16", functional(name, dim=1), tensor("f16", 3, 6), **half),
        function(type_name, "f64", functional(name, dim=1), tensor("f64", 3, 6), **double),
    ]


CASES: list[LayerCase] = [
    *family("nn.Softmax", "F.softmax"),
    *family("nn.LogSoftmax", "F.log_softmax"),
    *family("nn.Softmin", "F.softmin"),
    module("nn.Softmax2d", "batched", lambda nn: nn.Softmax2d(), f32(2, 5, 3, 4), also=((f32(1, 2, 2, 7),),)),
    module("nn.Softmax2d", "unbatched", lambda nn: nn.Softmax2d(), f32(5, 3, 4)),
]
