"""Functions of single elements that come under their ATen names."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, i64, tensor


def special(torch: Any, x: Any) -> Any:
    """Make some values NaN and infinite: the logarithm of a negative number, 1 / 0."""
    return torch.where(x > 1, 1 / torch.relu(-x), x) + torch.log(torch.relu(x + 1.5)) * 0


def unary(name: str, *inputs: Input, **arguments: Any) -> list[LayerCase]:
    """Make a case of a function for each input."""

    def call(torch: Any, x: Any) -> Any:
        return getattr(torch, name)(x, **arguments)

    return [function(f"aten::{name}", case.dtype, call, case) for case in inputs]


def named(name: str, *inputs: Input) -> list[LayerCase]:
    """Make a case of a function of torch.special for each input."""

    def call(torch: Any, *operands: Any) -> Any:
        return getattr(torch.special, name)(*operands)

    return [function(f"aten::special_{name}", "plain", call, *inputs)]


def at_special(name: str) -> LayerCase:
    """Make a case on NaN, infinities and what is between."""
    return function(
        f"aten::{name}", "special", lambda torch, x: getattr(torch, name)(special(torch, x)), f32(5, 9)
    )


def binary(name: str, *inputs: Input) -> LayerCase:
    """Make a case of a function of two tensors."""
    kind = "_".join(item.dtype for item in inputs)
    return function(f"aten::{name}", kind, lambda torch, x, y: getattr(torch, name)(x, y), *inputs)


_WHOLE = i64(4, 5, low=-9, high=9)
_SMALL = f32(4, 5, low=-0.99, high=0.99)

CASES: list[LayerCase] = [
    *unary("angle", f32(4, 5), tensor("c64", 4, 5), _WHOLE),
    *unary("deg2rad", f32(4, 5), _WHOLE),
    *unary("digamma", f32(4, 9, low=-6, high=20), tensor("f64", 4, 9, low=-6, high=20)),
    *unary("erfc", f32(4, 9, low=-4, high=9), tensor("f64", 4, 9, low=-4, high=9)),
    *unary("erfinv", _SMALL, tensor("f64", 4, 9, low=-0.9999, high=0.9999)),
    *unary("exp2", f32(4, 5), _WHOLE, tensor("f64", 4, 5)),
    *unary("frac", f32(4, 5)),
    *unary("i0", f32(4, 5)),
    *unary("log2", f32(4, 5, low=0.1)),
    *unary("rad2deg", f32(4, 5)),
    *unary("sgn", f32(4, 5), tensor("c64", 4, 5), _WHOLE),
    *unary("signbit", f32(4, 5), _WHOLE),
    *unary("sinc", f32(4, 5), _WHOLE),
    *unary("isfinite", f32(4, 5), _WHOLE),
    *unary("isreal", tensor("c64", 4, 5), f32(4)),
    *unary("nan_to_num", f32(4, 5), _WHOLE),
    *unary("logit", f32(4, 5, low=0.01, high=0.99)),
    *map(
        at_special,
        ("isfinite", "isinf", "isnan", "isneginf", "isposinf", "nan_to_num", "signbit", "angle", "exp2"),
    ),
    function(
        "aten::nan_to_num",
        "given",
        lambda torch, x: torch.nan_to_num(special(torch, x), 1.0, 2.0, 3.0),
        f32(5, 9),
    ),
    function("aten::logit", "eps", lambda torch, x: torch.logit(x, eps=0.2), f32(4, 5, low=0, high=1)),
    *named("entr", f32(4, 5)),
    *named("ndtr", f32(4, 5)),
    *named("xlog1py", f32(4, 5), f32(4, 5)),
    binary("copysign", f32(4, 5), f32(4, 5)),
    binary("copysign", _WHOLE, f32(4, 1)),
    binary("float_power", f32(4, 5, low=0), f32(4, 5)),
    binary("fmax", f32(4, 5), f32(5)),
    binary("fmin", _WHOLE, _WHOLE),
    function(
        "aten::fmax",
        "nan",
        lambda torch, x, y: torch.fmax(special(torch, x), special(torch, y)),
        f32(5, 9),
        f32(5, 9),
    ),
    function(
        "aten::fmin",
        "nan",
        lambda torch, x, y: torch.fmin(special(torch, x), special(torch, y)),
        f32(5, 9),
        f32(5, 9),
    ),
    binary("gcd", _WHOLE, _WHOLE),
    binary("lcm", _WHOLE, _WHOLE),
    binary("heaviside", _WHOLE, _WHOLE),
    binary("heaviside", f32(4, 5), f32(4, 5)),
    binary("hypot", f32(4, 5), f32(4, 5)),
    binary("ldexp", f32(4, 5), _WHOLE),
    binary("logaddexp2", f32(4, 5), f32(4, 5)),
    binary("nextafter", f32(4, 5), f32(4, 5)),
    binary("xlogy", f32(4, 5), f32(4, 5)),
    binary("xlogy", _WHOLE, _WHOLE),
    function("aten::xlogy", "number", lambda torch, x: torch.xlogy(x, 3), f32(4, 5)),
    function("aten::special_xlog1py", "number", lambda torch, x: torch.special.xlog1py(x, 3), f32(4, 5)),
    function("aten::clamp_min", "number", lambda torch, x: torch.clamp_min(x, 0.5), f32(4, 5)),
    function("aten::clamp_min", "tensor", lambda torch, x, y: torch.clamp_min(x, y), f32(4, 5), f32(5)),
    function("aten::clamp_max", "number", lambda torch, x: torch.clamp_max(x, 3), _WHOLE),
    function(
        "aten::isclose", "floats", lambda torch, x, y: torch.isclose(x, y, 0.5, 0.1), f32(4, 5), f32(4, 5)
    ),
    function("aten::isclose", "ints", lambda torch, x, y: torch.isclose(x, y, 0.5, 1.0), _WHOLE, _WHOLE),
    function(
        "aten::isclose",
        "nan",
        lambda torch, x: torch.isclose(special(torch, x), special(torch, x), equal_nan=True),
        f32(5, 9),
    ),
    function("aten::lerp", "number", lambda torch, x, y: torch.lerp(x, y, 0.7), f32(4, 5), f32(5)),
    function(
        "aten::lerp", "tensor", lambda torch, x, y, w: torch.lerp(x, y, w), f32(4, 5), f32(4, 5), f32(4, 1)
    ),
    function(
        "aten::addcmul",
        "value",
        lambda torch, x, y, z: torch.addcmul(x, y, z, value=0.5),
        f32(4, 5),
        f32(4, 1),
        f32(5),
    ),
    function("aten::addcmul", "ints", lambda torch, x, y, z: torch.addcmul(x, y, z), _WHOLE, _WHOLE, _WHOLE),
    function(
        "aten::addcdiv",
        "value",
        lambda torch, x, y, z: torch.addcdiv(x, y, z, value=2),
        f32(4, 5),
        f32(4, 1),
        f32(5),
    ),
]
