"""Normalisation over trailing dimensions and over groups of channels."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import LayerCase, f32, function, module, tensor

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


LAYER_NORM: list[LayerCase] = [
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

RMS_NORM: list[LayerCase] = [
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

GROUP_NORM: list[LayerCase] = [
    module(
        "nn.GroupNorm",
        "plain",
        trained(lambda nn: nn.GroupNorm(2, 6)),
        f32(2, 6, 3, 4),
        also=((f32(1, 6, 5, 1),),),
    ),
    module("nn.GroupNorm", "one_group_eps", trained(lambda nn: nn.GroupNorm(1, 4, eps=0.1)), f32(3, 4, 5)),
    module("nn.GroupNorm", "each_channel", trained(lambda nn: nn.GroupNorm(4, 4)), f32(2, 4, 5)),
    module("nn.GroupNorm", "not_affine", lambda nn: nn.GroupNorm(3, 6, affine=False), f32(2, 6, 3)),
    module("nn.GroupNorm", "rank2", trained(lambda nn: nn.GroupNorm(2, 6)), f32(3, 6)),
    module("nn.GroupNorm", "rank5", trained(lambda nn: nn.GroupNorm(2, 4)), f32(1, 4, 2, 3, 2)),
    module("nn.GroupNorm", "f64", trained(lambda nn: nn.GroupNorm(2, 4).double()), tensor("f64", 2, 4, 3)),
    function("F.group_norm", "plain", lambda torch, x: torch.nn.functional.group_norm(x, 2), f32(2, 4, 5)),
    function(
        "F.group_norm",
        "affine",
        lambda torch, x, w, b: torch.nn.functional.group_norm(x, 2, w, b, eps=1e-2),
        *(f32(2, 4, 5), f32(4), f32(4)),
    ),
    function(
        "F.group_norm",
        "weight_only",
        lambda torch, x, w: torch.nn.functional.group_norm(x, 2, w),
        *(f32(2, 4, 3, 3), f32(4)),
    ),
    function(
        "F.group_norm",
        "f16",
        lambda torch, x: torch.nn.functional.group_norm(x, 2),
        tensor("f16", 2, 4, 5),
        rtol=2e-3,
        atol=2e-3,
    ),
]

SPATIAL = {1: (5,), 2: (3, 4), 3: (2, 3, 2)}


def instance_norms(rank: int) -> list[LayerCase]:
    """Make the cases of nn.InstanceNorm1d, 2d or 3d."""

    def build(**options: Any) -> Callable[[Any], Any]:
        return trained(lambda nn: getattr(nn, f"InstanceNorm{rank}d")(3, **options))

    name, shape = f"nn.InstanceNorm{rank}d", SPATIAL[rank]
    other = tuple(size + 1 for size in shape)
    return [
        module(name, "plain", build(), f32(2, 3, *shape), also=((f32(1, 3, *other),),)),
        module(name, "affine_eps", build(affine=True, eps=0.1), f32(2, 3, *shape)),
        module(name, "tracked", build(track_running_stats=True), f32(2, 3, *shape)),
        module(name, "tracked_affine", build(affine=True, track_running_stats=True), f32(2, 3, *shape)),
        module(name, "unbatched", build(affine=True), f32(3, *shape)),
        module(name, "unbatched_tracked", build(track_running_stats=True), f32(3, *shape)),
    ]


INSTANCE_NORM: list[LayerCase] = [
    *instance_norms(1),
    *instance_norms(2),
    *instance_norms(3),
    function("F.instance_norm", "plain", lambda torch, x: torch.nn.functional.instance_norm(x), f32(2, 3, 5)),
    function(
        "F.instance_norm",
        "affine_eps",
        lambda torch, x, w, b: torch.nn.functional.instance_norm(x, weight=w, bias=b, eps=0.1),
        *(f32(2, 3, 4, 5), f32(3), f32(3)),
    ),
    function(
        "F.instance_norm",
        "statistics_to_update",
        lambda torch, x, m, v: torch.nn.functional.instance_norm(x, m.clone(), v.clone()),
        *(f32(2, 3, 2, 2, 3), f32(3), f32(3, low=0.5)),
    ),
]

LOCAL_RESPONSE_NORM: list[LayerCase] = [
    module(
        "nn.LocalResponseNorm",
        "plain",
        lambda nn: nn.LocalResponseNorm(3),
        f32(2, 7, 3, 4),
        also=((f32(1, 2, 2, 2),),),
    ),
    module("nn.LocalResponseNorm", "even", lambda nn: nn.LocalResponseNorm(4, 0.5, 0.3, 2.0), f32(2, 7, 5)),
    module("nn.LocalResponseNorm", "wide", lambda nn: nn.LocalResponseNorm(9, 1.0), f32(1, 4, 2, 3, 2)),
    function(
        "F.local_response_norm",
        "one",
        lambda torch, x: torch.nn.functional.local_response_norm(x, 1, alpha=0.5, beta=0.5, k=0.1),
        f32(2, 4, 3),
    ),
    function(
        "F.local_response_norm",
        "five",
        lambda torch, x: torch.nn.functional.local_response_norm(x, 5, alpha=0.5),
        f32(2, 6, 3, 2),
    ),
    function(
        "F.local_response_norm",
        "f64",
        lambda torch, x: torch.nn.functional.local_response_norm(x, 2, alpha=0.5),
        tensor("f64", 1, 5, 3),
    ),
]


def normalize(name: str, *inputs: Any, **arguments: Any) -> LayerCase:
    """Make a case of F.normalize."""
    options = {key: arguments.pop(key) for key in ("also", "rtol", "atol") if key in arguments}
    return function(
        "F.normalize",
        name,
        lambda torch, x: torch.nn.functional.normalize(x, **arguments),
        *inputs,
        **options,
    )


NORMALIZE: list[LayerCase] = [
    normalize("plain", f32(3, 5), also=((f32(2, 7),),)),
    normalize("last", f32(2, 3, 5), dim=-1),
    normalize("dim0", f32(5), dim=0),
    normalize("p1", f32(2, 3, 4), p=1, dim=2),
    normalize("p3_eps", f32(2, 3, 4), p=3.0, dim=1, eps=5.0),
    normalize("p_inf", f32(2, 3, 4), p=float("inf"), dim=-1),
    normalize("p0", f32(2, 3, 4), p=0.0),
    normalize("f16", tensor("f16", 3, 5), rtol=2e-3, atol=2e-3),
    normalize("f64", tensor("f64", 3, 5)),
    normalize("c64", tensor("c64", 3, 5)),
]

CASES: list[LayerCase] = [
    *LAYER_NORM,
    *RMS_NORM,
    *GROUP_NORM,
    *INSTANCE_NORM,
    *LOCAL_RESPONSE_NORM,
    *NORMALIZE,
]
