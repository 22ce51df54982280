"""Activation functions."""

from collections.abc import Callable
from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, module, tensor

SPREAD = f32(2, 3, 5, low=-8, high=8)
OTHER_SHAPES = ((f32(1, 7, 4, low=-30, high=30),),)
HALF = tensor("f16", 3, 7, low=-8, high=8)
DOUBLE = tensor("f64", 2, 3, 4, low=-8, high=8)
WHOLE = tensor("i64", 3, 4, low=-9, high=9)

Call = Callable[[Any, Any], Any]


def twins(name: str, of: str, build: Callable[[Any], Any], call: Call, *variants: str) -> list[LayerCase]:
    """Make the cases of a module and its function; `of` is the function's type, "" for none."""
    inputs: dict[str, Input] = {"plain": SPREAD, "f16": HALF, "f64": DOUBLE, "i64": WHOLE}
    tolerance = {"f16": {"rtol": 2e-3, "atol": 2e-3}, "f64": {"rtol": 1e-12, "atol": 1e-12}}
    cases = [module(name, "plain", build, SPREAD, also=OTHER_SHAPES)]
    for variant in variants:
        options: dict[str, Any] = tolerance.get(variant, {})
        cases.append(function(of, variant, call, inputs[variant], **options))
    cases.append(function(of, "plain", call, SPREAD, also=OTHER_SHAPES))
    return cases


def functional(name: str, **arguments: Any) -> Call:
    """Call torch.nn.functional.NAME(x, **arguments)."""
    return lambda torch, x: getattr(torch.nn.functional, name)(x, **arguments)


FLOATS = ("f16", "f64")

CASES: list[LayerCase] = [
    *twins("nn.ReLU", "F.relu", lambda nn: nn.ReLU(), functional("relu"), *FLOATS, "i64"),
    *twins("nn.ReLU6", "F.relu6", lambda nn: nn.ReLU6(), functional("relu6"), *FLOATS),
    *twins("nn.Sigmoid", "F.sigmoid", lambda nn: nn.Sigmoid(), functional("sigmoid"), *FLOATS, "i64"),
    *twins("nn.SiLU", "F.silu", lambda nn: nn.SiLU(), functional("silu"), *FLOATS),
    *twins("nn.Hardswish", "F.hardswish", lambda nn: nn.Hardswish(), functional("hardswish"), *FLOATS),
    *twins(
        "nn.Hardsigmoid", "F.hardsigmoid", lambda nn: nn.Hardsigmoid(), functional("hardsigmoid"), *FLOATS
    ),
    *twins("nn.Tanh", "F.tanh", lambda nn: nn.Tanh(), functional("tanh"), *FLOATS, "i64"),
    *twins("nn.LeakyReLU", "F.leaky_relu", lambda nn: nn.LeakyReLU(), functional("leaky_relu"), *FLOATS),
    module("nn.LeakyReLU", "slope", lambda nn: nn.LeakyReLU(0.3), SPREAD),
    module("nn.LeakyReLU", "zero_slope", lambda nn: nn.LeakyReLU(0.0), SPREAD),
    function("F.leaky_relu", "steep", functional("leaky_relu", negative_slope=1.7), SPREAD),
    function("F.leaky_relu", "negative_slope", functional("leaky_relu", negative_slope=-0.4), SPREAD),
    *twins("nn.GELU", "F.gelu", lambda nn: nn.GELU(), functional("gelu"), *FLOATS),
    module("nn.GELU", "tanh", lambda nn: nn.GELU(approximate="tanh"), SPREAD),
    function("F.gelu", "tanh", functional("gelu", approximate="tanh"), SPREAD, also=OTHER_SHAPES),
    function("F.gelu", "tanh_f64", functional("gelu", approximate="tanh"), DOUBLE, rtol=1e-12, atol=1e-12),
    *twins("nn.ELU", "F.elu", lambda nn: nn.ELU(), functional("elu"), *FLOATS),
    module("nn.ELU", "alpha", lambda nn: nn.ELU(0.3), SPREAD),
    function("F.elu", "negative_alpha", functional("elu", alpha=-0.6), SPREAD),
    function("F.elu", "zero_alpha", functional("elu", alpha=0), SPREAD),
    *twins("nn.CELU", "F.celu", lambda nn: nn.CELU(), functional("celu"), *FLOATS),
    module("nn.CELU", "alpha", lambda nn: nn.CELU(0.7), SPREAD),
    function("F.celu", "alpha", functional("celu", alpha=2), SPREAD),
    function("F.celu", "negative_alpha", functional("celu", alpha=-1.5), SPREAD),
    *twins("nn.SELU", "F.selu", lambda nn: nn.SELU(), functional("selu"), *FLOATS),
    *twins("nn.LogSigmoid", "F.logsigmoid", lambda nn: nn.LogSigmoid(), functional("logsigmoid"), *FLOATS),
    *twins("nn.Mish", "F.mish", lambda nn: nn.Mish(), functional("mish"), *FLOATS),
    *twins("nn.Softplus", "F.softplus", lambda nn: nn.Softplus(), functional("softplus"), *FLOATS),
    module("nn.Softplus", "beta_threshold", lambda nn: nn.Softplus(2, 3), SPREAD),
    function("F.softplus", "beta_threshold", functional("softplus", beta=-0.7, threshold=1.5), SPREAD),
    *twins("nn.Softsign", "F.softsign", lambda nn: nn.Softsign(), functional("softsign"), *FLOATS, "i64"),
    *twins(
        "nn.Tanhshrink", "F.tanhshrink", lambda nn: nn.Tanhshrink(), functional("tanhshrink"), *FLOATS, "i64"
    ),
    *twins("nn.Hardshrink", "F.hardshrink", lambda nn: nn.Hardshrink(), functional("hardshrink"), *FLOATS),
    module("nn.Hardshrink", "lambd", lambda nn: nn.Hardshrink(2.2), SPREAD),
    function("F.hardshrink", "negative_lambd", functional("hardshrink", lambd=-0.5), SPREAD),
    *twins("nn.Softshrink", "F.softshrink", lambda nn: nn.Softshrink(), functional("softshrink"), *FLOATS),
    module("nn.Softshrink", "lambd", lambda nn: nn.Softshrink(2.2), SPREAD),
    function("F.softshrink", "zero_lambd", functional("softshrink", lambd=0.0), SPREAD),
    *twins("nn.Hardtanh", "F.hardtanh", lambda nn: nn.Hardtanh(), functional("hardtanh"), *FLOATS, "i64"),
    module("nn.Hardtanh", "bounds", lambda nn: nn.Hardtanh(-0.3, 4), SPREAD),
    function("F.hardtanh", "i64_bounds", functional("hardtanh", min_val=-1.5, max_val=4.7), WHOLE),
    module("nn.Threshold", "plain", lambda nn: nn.Threshold(0.1, 20.0), SPREAD, also=OTHER_SHAPES),
    function(
        "F.threshold", "plain", functional("threshold", threshold=0.1, value=20.5), SPREAD, also=OTHER_SHAPES
    ),
    function("F.threshold", "ints", functional("threshold", threshold=-1, value=3), SPREAD),
    function("F.threshold", "i64", functional("threshold", threshold=0.5, value=4.7), WHOLE),
    *twins("nn.RReLU", "F.rrelu", lambda nn: nn.RReLU(), functional("rrelu"), "f16"),
    module("nn.RReLU", "bounds", lambda nn: nn.RReLU(0.1, 0.4), SPREAD),
    function("F.rrelu", "bounds", functional("rrelu", lower=0.2, upper=0.9), SPREAD),
    function("F.rrelu", "f64", functional("rrelu", lower=0.25, upper=0.75), DOUBLE, rtol=1e-12, atol=1e-12),
    module("nn.PReLU", "per_channel", lambda nn: nn.PReLU(3), SPREAD, also=((f32(4, 3, 1),),)),
    module("nn.PReLU", "per_channel_f64", lambda nn: nn.PReLU(3).double(), DOUBLE),
    function("F.prelu", "one", lambda torch, x, w: torch.nn.functional.prelu(x, w), SPREAD, f32(1)),
    function("F.prelu", "per_channel", lambda torch, x, w: torch.nn.functional.prelu(x, w), SPREAD, f32(3)),
    function("F.prelu", "vector", lambda torch, x, w: torch.nn.functional.prelu(x, w), f32(5), f32(1)),
    function(
        "F.prelu",
        "f16",
        lambda torch, x, w: torch.nn.functional.prelu(x, w),
        *(tensor("f16", 2, 3, 4), tensor("f16", 3)),
        rtol=2e-3,
        atol=2e-3,
    ),
    module("nn.GLU", "last", lambda nn: nn.GLU(), f32(3, 8), also=((f32(5, 2),),)),
    module("nn.GLU", "dim0", lambda nn: nn.GLU(0), f32(4, 3, 5)),
    function("F.glu", "plain", functional("glu"), f32(2, 3, 6)),
    function("F.glu", "dim1", functional("glu", dim=1), f32(2, 6, 3, 3), also=((f32(1, 2, 3, 1),),)),
    function("F.glu", "f16", functional("glu", dim=-2), tensor("f16", 4, 3), rtol=2e-3, atol=2e-3),
    function(
        "F.silu", "permuted", lambda torch, x: torch.nn.functional.silu(x.permute(2, 0, 1)), f32(3, 4, 5)
    ),
    *(
        function(type_name, "c64", functional(name), tensor("c64", 2, 3))
        for type_name, name in (
            ("F.sigmoid", "sigmoid"),
            ("F.silu", "silu"),
            ("F.tanh", "tanh"),
            ("F.softsign", "softsign"),
            ("F.tanhshrink", "tanhshrink"),
        )
    ),
]
