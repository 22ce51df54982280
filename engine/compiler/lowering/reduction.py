"""Reductions of float32 over given axes."""

import math

import numpy as np

from engine.compiler.emit.pointwise import Leaf, apply
from engine.compiler.graph import EXACT, FLOAT, Bounds, Node, Reduction, Scan, Tensor
from engine.compiler.lowering.context import OF_MASKS, LoweringContext, lowers, reads_all
from engine.compiler.lowering.looks import look
from engine.compiler.lowering.pointwise import pointwise, pointwise_tensor
from engine.spec import TensorSpec

_HOW = {"torch.mean": "mean", "torch.sum": "sum"}
_HOW |= {"torch.amax": "max", "torch.max": "max", "torch.amin": "min", "torch.min": "min"}
_TINY = float(np.finfo(np.float32).tiny)


@lowers(*_HOW)
@reads_all
def reduction(context: LoweringContext) -> Node | None:
    """Lower a mean, sum, largest or smallest value; not where it is."""
    if context.shape("input") is None:
        return _reduction_of_integers(context)
    axes = _axes(context)
    if axes is None:
        return None
    return Reduction([context.index], [context.tensor("input")], how=_HOW[context.type], axes=axes)


def _reduction_of_integers(context: LoweringContext) -> Node | None:
    """Lower a sum or an extreme of integers or truth values, as far as it is sure to be exact."""
    if not context.reads("input") or len(context.outputs) != 1 or context.type == "torch.mean":
        return None
    x = context.tensor("input")
    axes = _places(context.value("dim"), x.rank)
    count = math.prod(x.shape[axis] for axis in axes) if _HOW[context.type] == "sum" else 1
    context.bounds = _times(context, x, count)
    if context.bounds is None:
        return None
    return Reduction([context.index], [x], how=_HOW[context.type], axes=axes)


def _times(context: LoweringContext, x: Tensor, count: int) -> Bounds | None:
    """Return the bounds of sums of at most so many of a tensor's integers; None where one may not be exact."""
    for _ in range(2):
        if x.bounds is None:
            return None
        least, largest = min(x.bounds[0], x.bounds[0] * count), max(x.bounds[1], x.bounds[1] * count)
        if max(-least, largest) < EXACT:
            return least, largest
        context.assume(context.place("input"), OF_MASKS)
    return None


@lowers("aten::any", "aten::all")
@reads_all
def truth_of_any(context: LoweringContext) -> Node | None:
    """Lower whether any or all elements are not 0."""
    output = context.outputs[0]
    if not context.reads("input") or not isinstance(output, TensorSpec) or output.dtype != np.bool_:
        return None
    x = context.tensor("input")
    if x.dtype != np.bool_:
        x = pointwise_tensor(context, x, apply("ne", Leaf(1), 0.0))
    context.bounds = (0, 1)
    how = "max" if context.type == "aten::any" else "min"
    return Reduction([context.index], [x], how=how, axes=_places(context.value("dim"), x.rank))


@lowers("torch.cumsum")
@reads_all
def cumulative_sum(context: LoweringContext) -> Node | None:
    """Lower sums of all elements up to each along an axis; of integers, as far as they are sure to be exact."""
    output = context.outputs[0]
    if not context.reads("input") or not isinstance(output, TensorSpec) or not output.rank:
        return None
    x, axis = context.tensor("input"), context.value("dim") % output.rank
    if output.dtype != FLOAT:
        context.bounds = _times(context, x, x.shape[axis])
    if output.dtype != FLOAT and context.bounds is None:
        return None
    return Scan([context.index], [x], how="cumsum", axis=axis)


@lowers("torch.argmax", "torch.argmin")
@reads_all
def place_of_extreme(context: LoweringContext) -> Node | None:
    """Lower where the first largest or smallest element is."""
    dim = context.value("dim")
    if not context.reads("input") or (dim is None and context.value("keepdim")):
        return None
    x = context.tensor("input")
    if x.dtype != FLOAT and x.bounds is None:  # rounded integers may be equal
        return None
    if dim is None:
        size = math.prod(x.shape)
        x = look(context, x, (size,), lambda view: view.reshaped((size,)))
    if not x.rank:
        return None
    axis = (dim or 0) % x.rank
    context.bounds = (0, x.shape[axis] - 1)
    return Scan([context.index], [x], how=context.type.removeprefix("torch."), axis=axis)


@lowers("torch.var", "torch.std")
def spread(context: LoweringContext) -> Node | None:
    """Lower variance and standard deviation: the mean of squared distances from the mean."""
    axes = _axes(context)
    if axes is None:
        return None
    x, correction = context.tensor("input"), context.value("correction")
    taken = float(context.value("unbiased")) if correction is None else float(correction)
    count = math.prod(x.shape[axis] for axis in axes)
    mean = reduce(context, "mean", x, axes)
    divisor, shape = max(count - taken, 0.0), _output_shape(context)
    if context.type == "torch.std":
        return _deviation(
            context, pointwise_tensor(context, x, apply("sub", Leaf(1), Leaf(2)), mean), axes, divisor
        )
    squares = pointwise_tensor(context, x, apply("square", apply("sub", Leaf(1), Leaf(2))), mean)
    return pointwise(context, [reduce(context, "sum", squares, axes, shape)], apply("div", Leaf(1), divisor))


def _deviation(
    context: LoweringContext, distances: Tensor, axes: tuple[int, ...], divisor: float
) -> Node | None:
    """Return what makes the root of the mean square of distances, in parts of the largest: no square overflows."""
    shape = _output_shape(context)
    sizes = pointwise_tensor(context, distances, apply("abs", Leaf(1)))
    unit = apply("maximum", Leaf(2), _TINY)
    parts = apply("square", apply("div", Leaf(1), unit))
    squares = pointwise_tensor(context, distances, parts, reduce(context, "max", sizes, axes))
    total = reduce(context, "sum", squares, axes, shape)
    root = apply("mul", unit, apply("sqrt", apply("div", Leaf(1), divisor)))
    return pointwise(context, [total, reduce(context, "max", sizes, axes, shape)], root)


@lowers("torch.norm")
def norm(context: LoweringContext) -> Node | None:
    """Lower the length of vectors, by the sum of their squares or of their absolute values."""
    axes, order = _axes(context), context.value("p")
    if axes is None or order not in (None, "fro", 1, 2):
        return None
    x, shape = context.tensor("input"), _output_shape(context)
    if order == 1:
        sizes = pointwise_tensor(context, x, apply("abs", Leaf(1)))
        return Reduction([context.index], [sizes], how="sum", axes=axes)
    total = reduce(context, "sum", pointwise_tensor(context, x, apply("square", Leaf(1))), axes, shape)
    return pointwise(context, [total], apply("sqrt", Leaf(1)))


def reduce(
    context: LoweringContext, how: str, x: Tensor, axes: tuple[int, ...], shape: tuple[int, ...] | None = None
) -> Tensor:
    """Put a reduction before an operator's own node; by default the axes stay, with one element each."""
    kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(x.shape))
    node = Reduction([context.index], [x], how=how, axes=axes)
    return context.add(node, kept if shape is None else shape)[0]


def _axes(context: LoweringContext) -> tuple[int, ...] | None:
    """Return what is reduced, counted from the front; None where it is no float32 or the result is another dtype."""
    shape, output = context.shape("input"), context.outputs[0]
    is_float = isinstance(output, TensorSpec) and len(context.outputs) == 1 and context.has_operand("input")
    if not shape or not is_float or context.value("dtype") not in (None, context.spec("input").dtype):  # type: ignore[union-attr]  # shape implies it
        return None
    return _places(context.value("dim"), len(shape))


def _places(dims: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Return axes, counted from the front; all of them where none are given."""
    if dims is None or dims == ():
        return tuple(range(rank))
    return tuple(sorted(axis % rank for axis in (dims if isinstance(dims, tuple) else (dims,))))


def _output_shape(context: LoweringContext) -> tuple[int, ...]:
    output = context.outputs[0]
    if not isinstance(output, TensorSpec):
        raise TypeError("a reduction gives a tensor")
    return output.shape
