"""Activations, batch normalisation and whole expressions."""

import math
from collections.abc import Callable

import numpy as np

from engine.compiler.emit.pointwise import FUNCTIONS, Leaf, Literal, PointwiseExpression, apply
from engine.compiler.graph import Node, Pointwise, Reshape, Tensor
from engine.compiler.lowering.context import LoweringContext, lowers
from engine.compiler.memory.view import View
from engine.kernels.activation import SELU_ALPHA, SELU_SCALE

_LARGEST = float(np.finfo(np.float32).max)

_X = Leaf(1)


# x - tanh(x) is none of them: of small x it has only the digits that the last bits of the tangent leave
_ACTIVATIONS: dict[str, Callable[[LoweringContext], PointwiseExpression]] = {
    "ReLU": lambda _: apply("relu", _X),
    "ReLU6": lambda _: apply("clamp", _X, 0.0, 6.0),
    "Hardtanh": lambda context: apply("clamp", _X, context.value("min_val"), context.value("max_val")),
    "LeakyReLU": lambda context: apply("leaky_relu", _X, context.value("negative_slope")),
    "Sigmoid": lambda _: apply("sigmoid", _X),
    "Hardsigmoid": lambda _: apply("hardsigmoid", _X),
    "SiLU": lambda _: apply("silu", _X),
    "Hardswish": lambda _: apply("hardswish", _X),
    "GELU": lambda context: apply("gelu" if context.value("approximate") == "none" else "gelu_tanh", _X),
    "Tanh": lambda _: apply("tanh", _X),
    "Mish": lambda _: apply("mish", _X),
    "ELU": lambda context: apply("elu", _X, context.value("alpha")),
    "CELU": lambda context: apply("elu", _X, context.value("alpha"), 1 / context.value("alpha")),
    "SELU": lambda _: apply("mul", apply("elu", _X, SELU_ALPHA), SELU_SCALE),
    "RReLU": lambda context: apply("leaky_relu", _X, (context.value("lower") + context.value("upper")) / 2),
    "Softplus": lambda context: apply("softplus", _X, context.value("beta"), context.value("threshold")),
    "LogSigmoid": lambda _: apply("log_sigmoid", _X),
    "Softsign": lambda _: apply("div", _X, apply("add", apply("abs", _X), 1.0)),
    "Hardshrink": lambda context: apply("hardshrink", _X, context.value("lambd")),
    "Softshrink": lambda context: apply(
        "sub", _X, apply("clamp", _X, -context.value("lambd"), context.value("lambd"))
    ),
    "Threshold": lambda context: apply("threshold", _X, context.value("threshold"), context.value("value")),
}
_FUNCTIONAL = {name: name.lower() for name in _ACTIVATIONS} | {"LeakyReLU": "leaky_relu"}
"""Name of a module -> name of its function."""


def _register() -> None:
    for name, make in _ACTIVATIONS.items():

        def rule(
            context: LoweringContext, make: Callable[[LoweringContext], PointwiseExpression] = make
        ) -> Node | None:
            if not context.has_operand("input"):
                return None
            return pointwise(context, [context.tensor("input")], make(context))

        lowers(f"nn.{name}", f"F.{_FUNCTIONAL[name]}")(rule)


_register()


def pointwise(
    context: LoweringContext, tensors: list[Tensor], expression: PointwiseExpression
) -> Pointwise | None:
    """Return the node of an expression over tensors (`Leaf(1)` …); None where a function or number has no kernel."""
    if not _is_known(expression):
        return None
    node = Pointwise([context.index], tensors)
    node.epilogue = expression
    return node


def pointwise_tensor(
    context: LoweringContext, x: Tensor, expression: PointwiseExpression, *others: Tensor
) -> Tensor:
    """Put a pointwise node of the shape of its first operand before an operator's own; returns its output."""
    node = pointwise(context, [x, *others], expression)
    if node is None:
        raise ValueError(f"no kernel for {expression}")
    return context.add(node, x.shape)[0]


def _is_known(expression: PointwiseExpression) -> bool:
    if isinstance(expression, Literal):
        return number(expression.value) is not None
    if isinstance(expression, Leaf):
        return True
    return expression.function in FUNCTIONS and all(map(_is_known, expression.arguments))


@lowers("torch.clamp")
def clamp(context: LoweringContext) -> Node | None:
    """Lower limiting to numbers; where they cross, the upper one wins."""
    bounds = [context.value(name) for name in ("min", "max")]
    if context.shape("input") is None or any(name in context.operand_names for name in ("min", "max")):
        return None
    low, high = (
        end if bound is None else bound for bound, end in zip(bounds, (-math.inf, math.inf), strict=True)
    )
    if any(isinstance(bound, complex) or math.isnan(bound) for bound in (low, high)):
        return None
    return pointwise(context, [context.tensor("input")], apply("clamp", _X, low, high))


@lowers("nn.GLU", "F.glu")
def glu(context: LoweringContext) -> Node | None:
    """Lower the product of a tensor's first half with the sigmoid of the second."""
    shape = context.shape("input")
    if not shape:
        return None
    axis = context.value("dim") % len(shape)
    half = shape[axis] // 2

    def look(view: View) -> list[View]:
        return [view.sliced(axis, 0, half), view.sliced(axis, half, half)]

    shapes = [(*shape[:axis], half, *shape[axis + 1 :])] * 2
    halves = context.add(Reshape([context.index], [context.tensor("input")], look=look), *shapes)
    return pointwise(context, halves, apply("mul", _X, apply("sigmoid", Leaf(2))))


@lowers("nn.PReLU", "F.prelu")
def prelu(context: LoweringContext) -> Node | None:
    """Lower a leaky ReLU with one slope for all, or one per channel."""
    shape, weight = context.shape("input"), context.value("weight")
    if (
        shape is None
        or weight is None
        or not context.is_constant("weight")
        or not context.has_operand("input")
    ):
        return None
    spread = () if weight.size == 1 else (-1,) + (1,) * (len(shape) - 2)
    slope = context.make_constant(np.ascontiguousarray(weight, np.float32).reshape(spread))
    return pointwise(context, [context.tensor("input"), slope], apply("leaky_relu", _X, Leaf(2)))


@lowers("nn.BatchNorm1d", "nn.BatchNorm2d", "F.batch_norm")
def batch_norm(context: LoweringContext) -> Node | None:
    """Lower normalisation by given statistics to one multiplication and one addition per element."""
    names = ("running_mean", "running_var", "weight", "bias")
    shape = context.shape("input")
    mean, variance, weight, bias = (context.value(name) for name in names)
    if shape is None or len(shape) < 2 or mean is None or variance is None:
        return None
    if not all(map(context.is_constant, names)):
        return None
    # in double precision: the two numbers combine four, and are rounded once
    scale = 1 / np.sqrt(variance.astype(np.float64) + context.value("eps"))
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    spread = (-1,) + (1,) * (len(shape) - 2)
    factors = [context.make_constant(array.astype(np.float32).reshape(spread)) for array in (scale, shift)]
    expression = apply("add", apply("mul", _X, Leaf(2)), Leaf(3))
    return pointwise(context, [context.tensor("input"), *factors], expression)


@lowers("aten::addcmul", "aten::addcdiv")
def add_of_two(context: LoweringContext) -> Node | None:
    """Lower input + value · a · b, or value · a / b."""
    names, value = ("input", "tensor1", "tensor2"), number(context.value("value"))
    if value is None or not all(map(context.has_operand, names)):
        return None
    how = "mul" if context.type == "aten::addcmul" else "div"
    scaled = apply(how, apply("mul", value, Leaf(2)), Leaf(3))
    return pointwise(context, list(map(context.tensor, names)), apply("add", _X, scaled))


def number(value: object) -> Literal | None:
    """Return a plain number that a kernel computes with as numpy does; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not math.inf > abs(value) > _LARGEST:
        return Literal(float(value))
    with np.errstate(over="ignore"):
        rounded = float(np.float32(value))  # the exporter writes the largest number with nine digits
    return None if math.isinf(rounded) else Literal(rounded)
