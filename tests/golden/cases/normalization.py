"""Normalisation over trailing dimensions and over groups of channels."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import Case, f32, function, module, tensor

TINY = {"low": -1e-4, "high": 1e-4}


def trained(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give a module parameters other than ones and zeros, and statistics if it keeps any."""

    def make(nn: Any) -> Any:
        norm = build(nn)
        for parameter in norm.parameters():
            parameter.data.normal_()
        if getattr(norm, "running_mean", None) is not None:
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)
        return norm

    return make


LAYER_NORM: list[Case] = [
    module("nn.LayerNorm", "last", trained(lambda nn: nn.LayerNorm(6)), f32(3, 6), also=((f32(5, 6),),)),
    module("nn.LayerNorm", "last_two", trained(lambda nn: nn.LayerNorm((4, 5))), f32(2, 3, 4, 5)),
    module("nn.LayerNorm", "eps", trained(lambda nn: nn.LayerNorm(7, eps=0.3)), f32(2, 3, 7)),
    module(
        "nn.LayerNorm", "not_affine", lambda nn: nn.LayerNorm((3, 7), elementwise_affine=False), f32(2, 3, 7)
    ),
    module("nn.LayerNorm", "whole", trained(lambda nn: nn.LayerNorm(5)), f32(5)),
    module("nn.LayerNorm", "f64", trained(lambda nn: nn.LayerNorm(5).double()), tensor("f64", 2, 5)),
    function("F.layer_norm", "plain", lambda torch, x: torch.nn.functional.layer_norm(x, (5,)), f32(2, 3, 5)),
    function(
        "F.layer_norm",
        "affine",
        lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (3, 5), w, b, eps=1e-3),
        *(f32(2, 3, 5), f32(3, 5), f32(3, 5)),
    ),
    function(
        "F.layer_norm",
        "weight_only",
        lambda torch, x, w: torch.nn.functional.layer_norm(x, (5,), w),
        *(f32(2, 3, 5), f32(5)),
    ),
    function(
        "F.layer_norm",
        "large_mean",
        lambda torch, x: torch.nn.functional.layer_norm(x, (50,)),
        f32(2, 50, low=1000, high=1001),
        atol=1e-3,
    ),
    function(
        "F.layer_norm",
        "f16",
        lambda torch, x: torch.nn.functional.layer_norm(x, (5,)),
        tensor("f16", 2, 3, 5),
        rtol=2e-3,
        atol=2e-3,
    ),
]

RMS_NORM: list[Case] = [
    module("nn.RMSNorm", "last", trained(lambda nn: nn.RMSNorm(6)), f32(3, 6, **TINY), also=((f32(5, 6),),)),
    module("nn.RMSNorm", "last_two", trained(lambda nn: nn.RMSNorm((4, 5), eps=0.1)), f32(2, 3, 4, 5)),
    module("nn.RMSNorm", "not_affine", lambda nn: nn.RMSNorm(7, elementwise_affine=False), f32(2, 3, 7)),
    module("nn.RMSNorm", "f64", trained(lambda nn: nn.RMSNorm(5).double()), tensor("f64", 2, 5)),
    function(
        "F.rms_norm", "plain", lambda torch, x: torch.nn.functional.rms_norm(x, (5,)), f32(2, 3, 5, **TINY)
    ),
    function(
        "F.rms_norm",
        "weight_eps",
        lambda torch, x, w: torch.nn.functional.rms_norm(x, (3, 5), w, eps=1e-2),
        *(f32(2, 3, 5), f32(3, 5)),
    ),
    function(
        "F.rms_norm",
        "f16",
        lambda torch, x: torch.nn.functional.rms_norm(x, (5,)),
        tensor("f16", 2, 3, 5, low=-0.03, high=0.03),
        rtol=2e-3,
        atol=2e-3,
    ),
    function(
        "F.rms_norm",
        "f64",
        lambda torch, x: torch.nn.functional.rms_norm(x, (5,)),
        tensor("f64", 2, 5, low=-1e-8, high=1e-8),
        rtol=1e-10,
    ),
]

CASES: list[Case] = [*LAYER_NORM, *RMS_NORM]
