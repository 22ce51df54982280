"""Batch normalisation."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import LayerCase, f32, function, module, tensor


def trained(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give a module statistics and parameters that training could have left."""

    def make(nn: Any) -> Any:
        norm = build(nn)
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = getattr(norm, name, None)
            if value is not None:
                value.data.uniform_(0.5, 2) if name.endswith("var") else value.data.normal_()
        return norm

    return make


CASES: list[LayerCase] = [
    module("nn.BatchNorm1d", "rank2", trained(lambda nn: nn.BatchNorm1d(5)), f32(3, 5), also=((f32(1, 5),),)),
    module("nn.BatchNorm1d", "rank3", trained(lambda nn: nn.BatchNorm1d(4, eps=0.1)), f32(2, 4, 7)),
    module("nn.BatchNorm1d", "not_affine", trained(lambda nn: nn.BatchNorm1d(4, affine=False)), f32(2, 4, 3)),
    module(
        "nn.BatchNorm2d",
        "plain",
        trained(lambda nn: nn.BatchNorm2d(3)),
        f32(2, 3, 5, 4),
        also=((f32(1, 3, 2, 7),),),
    ),
    module("nn.BatchNorm2d", "eps", trained(lambda nn: nn.BatchNorm2d(3, eps=0.5)), f32(1, 3, 2, 2)),
    module(
        "nn.BatchNorm2d", "not_affine", trained(lambda nn: nn.BatchNorm2d(3, affine=False)), f32(2, 3, 2, 2)
    ),
    module(
        "nn.BatchNorm2d", "f64", trained(lambda nn: nn.BatchNorm2d(3).double()), tensor("f64", 1, 3, 2, 2)
    ),
    module("nn.BatchNorm3d", "plain", trained(lambda nn: nn.BatchNorm3d(3)), f32(2, 3, 2, 3, 2)),
    module(
        "nn.BatchNorm3d",
        "not_affine",
        trained(lambda nn: nn.BatchNorm3d(3, affine=False)),
        f32(1, 3, 2, 3, 2),
    ),
    function(
        "F.batch_norm",
        "plain",
        lambda torch, x, m, v: torch.nn.functional.batch_norm(x, m, v),
        *(f32(2, 3, 4, 5), f32(3), f32(3, low=0.5, high=2)),
    ),
    function(
        "F.batch_norm",
        "affine_eps",
        lambda torch, x, m, v, w, b: torch.nn.functional.batch_norm(x, m, v, w, b, eps=0.2),
        *(f32(2, 3, 5), f32(3), f32(3, low=0.5, high=2), f32(3), f32(3)),
    ),
    function(
        "F.batch_norm",
        "bias_only",
        lambda torch, x, m, v, b: torch.nn.functional.batch_norm(x, m, v, bias=b),
        *(f32(4, 3), f32(3), f32(3, low=0.5, high=2), f32(3)),
    ),
    function(
        "F.batch_norm",
        "of_the_input",
        lambda torch, x: torch.nn.functional.batch_norm(x, None, None, training=True),
        f32(2, 3, 5, 4),
    ),
    function(
        "F.batch_norm",
        "f16",
        lambda torch, x, m, v: torch.nn.functional.batch_norm(x, m, v),
        *(tensor("f16", 2, 3, 4, 5), tensor("f16", 3), tensor("f16", 3, low=0.5, high=2)),
        rtol=2e-3,
        atol=4e-3,
    ),
]
