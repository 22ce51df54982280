"""Activations and expressions."""

from typing import Any

from tests.differential.drawing import Drawing
from tests.differential.families.family import family

_PLAIN = {
    "nn.ReLU": "F.relu",
    "nn.ReLU6": "F.relu6",
    "nn.Sigmoid": "F.sigmoid",
    "nn.Hardsigmoid": "F.hardsigmoid",
    "nn.SiLU": "F.silu",
    "nn.Hardswish": "F.hardswish",
    "nn.Tanh": "F.tanh",
    "nn.Mish": "F.mish",
}
_UNARY = (
    *("neg(@0)", "abs(@0)", "sqrt(abs(@0))", "rsqrt(add(square(@0),0.5))", "square(tanh(@0))"),
    *("reciprocal(add(abs(@0),1))", "exp(tanh(@0))", "log(add(abs(@0),0.25))", "tanh(@0)", "sigmoid(@0)"),
    *("erf(@0)", "pow(@0,2)", "pow(add(abs(@0),0.5),0.7)", "mul(@0,-0.5)", "add(@0,1)", "sub(1.5,@0)"),
    *(
        "div(@0,3)",
        "div(2,add(abs(@0),1))",
        "max(@0,0.1)",
        "min(@0,mul(@0,@0))",
        "abs(sub(@0,mul(2,floor(mul(add(@0,1),0.5)))))",
    ),
    *("mul(@0,sigmoid(mul(@0,1.702)))", "maximum(@0,-0.25)", "minimum(@0,0.75)"),
    *("add(mul(@0,0.5),mul(tanh(@0),0.25))", "abs(sub(@0,mul(2,ceil(mul(sub(@0,1),0.5)))))"),
)
"""All of them continuous, those with steps inside as well: a result beside a step would be right on either side."""
_PAIRS = (
    *("add(@0,@1)", "add(@0,@1)", "sub(@1,@0)", "mul(@0,tanh(@1))", "max(@0,mul(@1,2.5))"),
    *("div(@0,add(abs(@1),1))", "min(@1,@0)", "add(mul(@0,0.5),@1)", "maximum(@0,@1)", "minimum(@1,@0)"),
    "mul(add(@0,@1),sigmoid(sub(@0,@1)))",
)


@family(weight=6)
def activation(d: Drawing, x: str) -> None:
    if d.chance(0.6):
        module = d.pick(tuple(_PLAIN))
        if d.chance(0.5):
            d.add(module, [x])
        else:
            d.add(_PLAIN[module], [x], named=True)
        return
    choices: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("nn.Hardtanh", "F.hardtanh", {"min_val": -0.5, "max_val": d.pick((0.5, 1.0))}),
        ("nn.LeakyReLU", "F.leaky_relu", {"negative_slope": d.pick((0.01, 0.2))}),
        ("nn.GELU", "F.gelu", {"approximate": d.pick(("none", "tanh"))}),
        ("nn.ELU", "F.elu", {"alpha": d.pick((1.0, 0.5))}),
    )
    module, function, given = d.pick(choices)
    if d.chance(0.5):
        d.add(module, [x], **given)
    else:
        d.add(function, [x], named=True, **given)


@family(weight=4)
def unary(d: Drawing, x: str) -> None:
    d.add("pnnx.Expression", [x], expr=d.pick(_UNARY))


@family(weight=6)
def residual(d: Drawing, x: str) -> None:
    """Combine with another tensor of the same shape."""
    d.add("pnnx.Expression", [x, d.pick(d.alike(x))], expr=d.pick(_PAIRS))


@family(weight=3)
def broadcast(d: Drawing, x: str) -> None:
    """Combine with a constant or an operand that spreads over the tensor, or that it spreads over."""
    shape = d.shape(x)
    small = tuple(1 if d.chance(0.5) else extent for extent in shape)
    small = small[d.number(0, len(small) - 1) :] if d.chance(0.4) else small
    others = [y for y in d.floats() if d.shape(y) != shape and _spreads(d.shape(y), shape)]
    other = d.pick(others) if others and d.chance(0.5) else d.constant(small)
    pair = [x, other] if d.chance(0.5) else [other, x]
    d.add("pnnx.Expression", pair, expr=d.pick(_PAIRS))


@family(weight=1)
def many_operands(d: Drawing, x: str) -> None:
    """Add up more tensors than an epilogue reads."""
    alike = d.alike(x)
    names = [d.pick(alike) for _ in range(d.number(3, 9))]
    text = "@0"
    for place in range(1, len(names)):
        text = f"add({text},mul(@{place},0.{place}))"
    d.add("pnnx.Expression", names, expr=text)


def _spreads(shape: tuple[int, ...], over: tuple[int, ...]) -> bool:
    if len(shape) > len(over):
        return False
    padded = (1,) * (len(over) - len(shape)) + shape
    return all(extent in (1, other) for extent, other in zip(padded, over, strict=True))
