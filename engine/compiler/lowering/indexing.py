"""Operators that pick elements by indices, which are known to be there: embedding, gather, index_select, index."""

from collections.abc import Sequence

import numpy as np

from engine.compiler.graph import Constant, Gather, Node, Tensor
from engine.compiler.lowering.context import LoweringContext, lowers, reads_all
from engine.dtypes import Array


@lowers("nn.Embedding", "F.embedding")
def embedding(context: LoweringContext) -> Node | None:
    """Lower a look-up of rows by an input of the graph, or by integers of known bounds."""
    weight = context.spec("weight")
    if weight is None or context.shape("weight") is None or not context.reads("input"):
        return None
    indices = context.tensor("input")
    rows = weight.shape[0]
    if not _is_within(indices, rows) and not context.assume(context.place("input"), (0, rows - 1)):
        return None
    has_operand = context.has_operand("weight")
    table = context.tensor("weight") if has_operand else context.make_constant(context.value("weight"))
    return Gather([context.index], [table, indices], kept=(None, indices.rank), start=0, spread=indices.rank)


def _is_within(indices: Tensor, size: int) -> bool:
    """Whether integers are places of an axis."""
    bounds = indices.bounds
    return bounds is not None and bounds[0] >= 0 and bounds[1] < size


@lowers("torch.gather")
@reads_all
def gather(context: LoweringContext) -> Node | None:
    """Lower a choice of elements along one axis, by indices in the shape of the output."""
    if not (context.reads("input") and context.reads("index")):
        return None
    source, indices = context.tensor("input"), context.tensor("index")
    rank = source.rank
    if not rank or not _is_within(indices, source.shape[axis := context.value("dim") % rank]):
        return None
    context.bounds = source.bounds
    kept = tuple(None if place == axis else place for place in range(rank))
    return Gather([context.index], [source, indices], kept=kept, start=0, spread=rank)


@lowers("torch.index_select")
@reads_all
def index_select(context: LoweringContext) -> Node | None:
    """Lower a choice of slices along one axis."""
    if not (context.reads("input") and context.reads("index")):
        return None
    source, indices = context.tensor("input"), context.tensor("index")
    rank = source.rank
    if (
        not rank
        or indices.rank != 1
        or not _is_within(indices, source.shape[axis := context.value("dim") % rank])
    ):
        return None
    context.bounds = source.bounds
    kept = tuple(None if place == axis else place for place in range(rank))
    return Gather([context.index], [source, indices], kept=kept, start=axis, spread=1)


@lowers("torch.flip")
@reads_all
def flip(context: LoweringContext) -> Node | None:
    """Lower the reverse order along some axes: a choice by indices that count down."""
    if not context.is_readable(0):
        return None
    x = context.operand(0)
    axes = [axis % x.rank for axis in context.value("dims")]
    if not axes:
        return None
    context.bounds = x.bounds
    for axis in axes[:-1]:
        (x,) = context.add(_flipped(context, x, axis), x.shape)
    return _flipped(context, x, axes[-1])


def _flipped(context: LoweringContext, x: Tensor, axis: int) -> Gather:
    places = context.make_constant(np.arange(x.shape[axis])[::-1])
    kept = tuple(None if place == axis else place for place in range(x.rank))
    return Gather([context.index], [x, places], kept=kept, start=axis, spread=1)


@lowers("Tensor.index")
@reads_all
def index(context: LoweringContext) -> Node | None:
    """Lower a choice by integers for some axes; those of masks have a shape that is known only at run time."""
    found = _indices(context)
    if not context.reads("input") or not found:
        return None
    source = context.tensor("input")
    axes = [axis for axis, indices in enumerate(found) if indices is not None]
    tensors = [indices for indices in found if indices is not None]
    if not all(_is_within(tensor, source.shape[axis]) for axis, tensor in zip(axes, tensors, strict=True)):
        return None
    spread = len(np.broadcast_shapes(*(tensor.shape for tensor in tensors)))
    start = axes[0] if axes[-1] - axes[0] + 1 == len(axes) else 0
    rest = [axis for axis in range(source.rank) if axis not in axes]
    outputs = [*range(start), *range(start + spread, len(rest) + spread)]
    places: dict[int, int] = dict(zip(rest, outputs, strict=True))
    context.bounds = source.bounds
    kept = tuple(places.get(axis) for axis in range(source.rank))
    return Gather([context.index], [source, *tensors], kept=kept, start=start, spread=spread)


def _indices(context: LoweringContext) -> Sequence[Tensor | None]:
    """Return the indices of each axis, None for a whole one; nothing where they are not to be had as integers."""
    given = context.value("expr") if "expr" not in context.operand_names else context.members("expr")
    spec = context.spec("input")
    if given is None or spec is None:
        return ()
    found = [_integers(context, member, extent) for member, extent in zip(given, spec.shape, strict=False)]
    if any(member is not None and indices is None for member, indices in zip(given, found, strict=True)):
        return ()
    return found if any(indices is not None for indices in found) else ()


def _integers(context: LoweringContext, member: Tensor | Array | None, extent: int) -> Tensor | None:
    """Return the indices of an axis, constant ones counted from its front; None where they are no integers."""
    if member is None or member.dtype.kind not in "iu" or member.dtype == np.uint8:
        return None
    if isinstance(member, Tensor):
        if not isinstance(member.node, Constant):
            return member
        member = member.node.array
    return context.make_constant(np.where(member < 0, member + extent, member))
