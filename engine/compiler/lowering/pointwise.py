"""Activations, batch normalisation and whole expressions."""

import math
from collections.abc import Callable

import numpy as np

from engine import expression as source
from engine.compiler.emit.pointwise import FUNCTIONS, MAX_NODES, Expression, Leaf, Number, apply
from engine.compiler.graph import Node, Pointwise, Reshape, Softmax, Tensor
from engine.compiler.lowering.site import FLOAT, Site, lowers
from engine.compiler.memory.view import View
from engine.kernels.activation import SELU_ALPHA, SELU_SCALE
from engine.spec import TensorSpec

_LARGEST = float(np.finfo(np.float32).max)

_X = Leaf(1)


# x - tanh(x) is none of them: of small x it has only the digits that the last bits of the tangent leave
_ACTIVATIONS: dict[str, Callable[[Site], Expression]] = {
    "ReLU": lambda _: apply("relu", _X),
    "ReLU6": lambda _: apply("clamp", _X, 0.0, 6.0),
    "Hardtanh": lambda site: apply("clamp", _X, site.value("min_val"), site.value("max_val")),
    "LeakyReLU": lambda site: apply("leaky_relu", _X, site.value("negative_slope")),
    "Sigmoid": lambda _: apply("sigmoid", _X),
    "Hardsigmoid": lambda _: apply("hardsigmoid", _X),
    "SiLU": lambda _: apply("silu", _X),
    "Hardswish": lambda _: apply("hardswish", _X),
    "GELU": lambda site: apply("gelu" if site.value("approximate") == "none" else "gelu_tanh", _X),
    "Tanh": lambda _: apply("tanh", _X),
    "Mish": lambda _: apply("mish", _X),
    "ELU": lambda site: apply("elu", _X, site.value("alpha")),
    "CELU": lambda site: apply("elu", _X, site.value("alpha"), 1 / site.value("alpha")),
    "SELU": lambda _: apply("mul", apply("elu", _X, SELU_ALPHA), SELU_SCALE),
    "RReLU": lambda site: apply("leaky_relu", _X, (site.value("lower") + site.value("upper")) / 2),
    "Softplus": lambda site: apply("softplus", _X, site.value("beta"), site.value("threshold")),
    "LogSigmoid": lambda _: apply("log_sigmoid", _X),
    "Softsign": lambda _: apply("div", _X, apply("add", apply("abs", _X), 1.0)),
    "Hardshrink": lambda site: apply("hardshrink", _X, site.value("lambd")),
    "Softshrink": lambda site: apply(
        "sub", _X, apply("clamp", _X, -site.value("lambd"), site.value("lambd"))
    ),
    "Threshold": lambda site: apply("threshold", _X, site.value("threshold"), site.value("value")),
}
_FUNCTIONAL = {
    "ReLU": "relu",
    "ReLU6": "relu6",
    "Hardtanh": "hardtanh",
    "LeakyReLU": "leaky_relu",
    "Sigmoid": "sigmoid",
    "Hardsigmoid": "hardsigmoid",
    "SiLU": "silu",
    "Hardswish": "hardswish",
    "GELU": "gelu",
    "Tanh": "tanh",
    "Mish": "mish",
    "ELU": "elu",
    "CELU": "celu",
    "SELU": "selu",
    "RReLU": "rrelu",
    "Softplus": "softplus",
    "LogSigmoid": "logsigmoid",
    "Softsign": "softsign",
    "Hardshrink": "hardshrink",
    "Softshrink": "softshrink",
    "Threshold": "threshold",
}
_EXPRESSION = {
    "pow": "pow",
    "max": "maximum",
    "min": "minimum",
    **{
        name: name
        for name in ("add", "sub", "mul", "div", "neg", "abs", "sqrt", "rsqrt", "square", "reciprocal")
    },
    **{
        name: name for name in ("exp", "log", "tanh", "sigmoid", "erf", "floor", "ceil", "maximum", "minimum")
    },
}
"""Function of pnnx.Expression -> the kernels' name."""


def _register() -> None:
    for name, make in _ACTIVATIONS.items():

        def rule(site: Site, make: Callable[[Site], Expression] = make) -> Node | None:
            return pointwise(site, [site.tensor("input")], make(site)) if site.has_operand("input") else None

        lowers(f"nn.{name}", f"F.{_FUNCTIONAL[name]}")(rule)


_register()


def pointwise(site: Site, tensors: list[Tensor], expression: Expression) -> Pointwise | None:
    """Return the node of an expression over tensors (`Leaf(1)` …); None where a function or number has no kernel."""
    if not _is_known(expression):
        return None
    node = Pointwise([site.index], tensors)
    node.epilogue = expression
    return node


def pointwise_tensor(site: Site, x: Tensor, expression: Expression, *others: Tensor) -> Tensor:
    """Put a pointwise node of the shape of its first operand before an operator's own; returns its output."""
    node = pointwise(site, [x, *others], expression)
    if node is None:
        raise ValueError(f"no kernel for {expression}")
    return site.add(node, x.shape)[0]


def _is_known(expression: Expression) -> bool:
    if isinstance(expression, Number):
        return number(expression.value) is not None
    if isinstance(expression, Leaf):
        return True
    return expression.function in FUNCTIONS and all(map(_is_known, expression.arguments))


@lowers("torch.clamp")
def clamp(site: Site) -> Node | None:
    """Lower limiting to numbers; where they cross, the upper one wins."""
    bounds = [site.value(name) for name in ("min", "max")]
    if site.shape("input") is None or any(name in site.operand_names for name in ("min", "max")):
        return None
    low, high = (
        end if bound is None else bound for bound, end in zip(bounds, (-math.inf, math.inf), strict=True)
    )
    if any(isinstance(bound, complex) or math.isnan(bound) for bound in (low, high)):
        return None
    return pointwise(site, [site.tensor("input")], apply("clamp", _X, low, high))


@lowers("nn.Softmin", "F.softmin")
def softmin(site: Site) -> Node | None:
    """Lower a softmax of the negative."""
    shape, axis = site.shape("input"), site.value("dim")
    if not shape or not isinstance(axis, int):
        return None
    negative = pointwise_tensor(site, site.tensor("input"), apply("neg", _X))
    return Softmax([site.index], [negative], axis=axis % len(shape))


@lowers("nn.GLU", "F.glu")
def glu(site: Site) -> Node | None:
    """Lower the product of a tensor's first half with the sigmoid of the second."""
    shape = site.shape("input")
    if not shape:
        return None
    axis = site.value("dim") % len(shape)
    half = shape[axis] // 2

    def look(view: View) -> list[View]:
        return [view.sliced(axis, 0, half), view.sliced(axis, half, half)]

    shapes = [(*shape[:axis], half, *shape[axis + 1 :])] * 2
    halves = site.add(Reshape([site.index], [site.tensor("input")], look=look), *shapes)
    return pointwise(site, halves, apply("mul", _X, apply("sigmoid", Leaf(2))))


@lowers("nn.PReLU", "F.prelu")
def prelu(site: Site) -> Node | None:
    """Lower a leaky ReLU with one slope for all, or one per channel."""
    shape, weight = site.shape("input"), site.value("weight")
    if shape is None or weight is None or not site.is_constant("weight") or not site.has_operand("input"):
        return None
    spread = () if weight.size == 1 else (-1,) + (1,) * (len(shape) - 2)
    slope = site.make_constant(np.ascontiguousarray(weight, np.float32).reshape(spread))
    return pointwise(site, [site.tensor("input"), slope], apply("leaky_relu", _X, Leaf(2)))


@lowers("nn.BatchNorm1d", "nn.BatchNorm2d", "F.batch_norm")
def batch_norm(site: Site) -> Node | None:
    """Lower normalisation by given statistics to one multiplication and one addition per element."""
    names = ("running_mean", "running_var", "weight", "bias")
    shape = site.shape("input")
    mean, variance, weight, bias = (site.value(name) for name in names)
    if shape is None or len(shape) < 2 or mean is None or variance is None:
        return None
    if not all(map(site.is_constant, names)):
        return None
    # in double precision: the two numbers stand for four, and are rounded once
    scale = 1 / np.sqrt(variance.astype(np.float64) + site.value("eps"))
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    spread = (-1,) + (1,) * (len(shape) - 2)
    factors = [site.make_constant(array.astype(np.float32).reshape(spread)) for array in (scale, shift)]
    expression = apply("add", apply("mul", _X, Leaf(2)), Leaf(3))
    return pointwise(site, [site.tensor("input"), *factors], expression)


@lowers("pnnx.Expression")
def expression(site: Site) -> Node | None:
    """Lower an expression over float32 tensors and numbers."""
    root = source.parse(str(site.step.operator.params["expr"]))
    output = site.outputs[0]
    if not isinstance(output, TensorSpec) or output.dtype != FLOAT:
        return None
    if len(source.postorder(root)) > MAX_NODES:
        return None
    places = sorted(source.operands(root))
    tensors = [place for place in places if isinstance(site.inputs[place], TensorSpec)]
    if not tensors or not all(map(site.is_float, tensors)):
        return None
    leaves = {place: Leaf(index + 1) for index, place in enumerate(tensors)}
    lowered = _translate(root, site, leaves)
    return None if lowered is None else pointwise(site, [site.operand(place) for place in tensors], lowered)


def _translate(node: source.Node, site: Site, leaves: dict[int, Leaf]) -> Expression | None:
    if isinstance(node, source.Number):
        return number(node.value)
    if isinstance(node, source.Operand):
        return leaves.get(node.index) or number(site.inputs[node.index])
    if not isinstance(node, source.Call) or node.function not in _EXPRESSION:
        return None
    arguments = [_translate(argument, site, leaves) for argument in node.arguments]
    if any(argument is None for argument in arguments):
        return None
    known = [argument for argument in arguments if argument is not None]
    if all(isinstance(argument, Number) for argument in known):
        return None  # numbers among themselves follow rules of their own
    return apply(_EXPRESSION[node.function], *known)


def number(value: object) -> Number | None:
    """Return a plain number that a kernel computes with as numpy does; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return None if math.inf > abs(value) > _LARGEST else Number(float(value))
