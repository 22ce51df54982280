"""Einstein summation, contracted pair by pair as batched matrix products."""

import math
from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.kernels.casting import narrow, widen
from engine.kernels.matrix import matmul
from engine.kernels.sums import total

Labels = tuple[int, ...]
"""One label per axis: letters by their code point, the axes of an ellipsis by negative numbers, -1 the last."""


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """Read an equation as `torch.einsum` does: letters, `...`, spaces, an optional `->` and output.

    A term with fewer letters than its operand has dimensions counts as one that starts with `...`: where all terms
    start with it, the exporter drops it.

    Args:
        equation: `"bij,bjk->bik"`.
        ranks: number of dimensions of each operand.

    Returns:
        The labels of each operand's axes, and those of the output's.

    Raises:
        ValueError: the equation is malformed, or does not fit operands of these ranks.
    """
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{equation!r} takes {len(terms)} operands, not {len(ranks)}")
    operands = [_labels(term, rank) for term, rank in zip(terms, ranks, strict=True)]
    seen = [label for labels in operands for label in labels]
    dots = tuple(range(min((*seen, 0)), 0))
    if not arrow:
        return operands, (
            *dots,
            *sorted(label for label in set(seen) if label >= 0 and seen.count(label) == 1),
        )
    if dots and "..." not in inputs:
        output = f"...{output}"
    result = _labels(output, len(output.replace("...", "")) + len(dots) * ("..." in output))
    if len(set(result)) != len(result) or not set(result) <= set(seen):
        raise ValueError(f"{output!r} must name labels of the operands, each once")
    return operands, result


def _labels(term: str, rank: int) -> Labels:
    """Give every axis of one operand its label."""
    before, _, after = term.partition("...") if "..." in term else ("", "", term)
    letters = before + after
    if not all(letter.isascii() and letter.isalpha() for letter in letters):
        raise ValueError(f"{term!r} has something other than letters and one ellipsis")
    hidden = rank - len(letters)
    if hidden < 0:
        raise ValueError(f"{term!r} does not fit {rank} dimensions")
    return (*map(ord, before), *range(-hidden, 0), *map(ord, after))


def sizes_of(operands: Sequence[Labels], shapes: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the size of every label; axes of size 1 broadcast.

    Raises:
        ValueError: a label has different sizes.
    """
    sizes: dict[int, int] = {}
    for labels, shape in zip(operands, shapes, strict=True):
        own: dict[int, int] = {}
        for label, size in zip(labels, shape, strict=True):
            if own.setdefault(label, size) != size:
                raise ValueError(f"a repeated label has sizes {own[label]} and {size} in one operand")
        for label, size in own.items():
            known = sizes.get(label, 1)
            if known not in (1, size) and size != 1:
                raise ValueError(f"a label has sizes {known} and {size}")
            sizes[label] = size if known == 1 else known
    return sizes


def einsum(equation: str, operands: Sequence[Array]) -> Array:
    """Sum products of elements over all labels that the output does not name; float16 in float32.

    The operands have one dtype, which the result has as well.

    Raises:
        ValueError: the equation does not fit the operands.
    """
    terms, output = parse(equation, [operand.ndim for operand in operands])
    sizes_of(terms, [operand.shape for operand in operands])
    pairs = [_diagonal(widen(operand), labels) for operand, labels in zip(operands, terms, strict=True)]
    product, labels = pairs[0]
    for place, (other, other_labels) in enumerate(pairs[1:], 2):
        needed = set(output).union(*(later for _, later in pairs[place:]))
        product, labels = _contract(product, labels, other, other_labels, needed)
    product, labels = _sum_out(product, labels, set(output))
    return narrow(product.transpose([labels.index(label) for label in output]), operands[0].dtype)


def _diagonal(x: Array, labels: Labels) -> tuple[Array, Labels]:
    """Take the diagonal of axes that carry the same label."""
    for label in set(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            x = np.diagonal(x, axis1=first, axis2=second)
            labels = (*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label)
    return x, labels


def _sum_out(x: Array, labels: Labels, needed: set[int]) -> tuple[Array, Labels]:
    """Sum over axes whose label is not needed any more."""
    gone = tuple(axis for axis, label in enumerate(labels) if label not in needed)
    if not gone:
        return x, labels
    return total(x, gone), tuple(label for label in labels if label in needed)


def _contract(
    a: Array, a_labels: Labels, b: Array, b_labels: Labels, needed: set[int]
) -> tuple[Array, Labels]:
    """Multiply two operands as stacks of matrices: (batch, rows, summed) times (batch, summed, columns)."""
    a, a_labels = _sum_out(a, a_labels, needed | set(b_labels))
    b, b_labels = _sum_out(b, b_labels, needed | set(a_labels))
    common = [label for label in a_labels if label in b_labels]
    batch = [label for label in common if label in needed]
    summed = [label for label in common if label not in needed]
    rows = [label for label in a_labels if label not in b_labels]
    columns = [label for label in b_labels if label not in a_labels]
    a, b = _broadcast_summed(a, a_labels, b, b_labels, summed)
    left = _arranged(a, a_labels, batch, rows, summed)
    right = _arranged(b, b_labels, batch, summed, columns)
    product = matmul(left, right)
    extents = [
        size
        for x, labels, group in ((a, a_labels, rows), (b, b_labels, columns))
        for size in _extents(x, labels, group)
    ]
    return product.reshape((*product.shape[:-2], *extents)), (*batch, *rows, *columns)


def _broadcast_summed(
    a: Array, a_labels: Labels, b: Array, b_labels: Labels, summed: Sequence[int]
) -> tuple[Array, Array]:
    """Bring summed axes to one size: where one operand has size 1 the other is summed first."""
    for label in summed:
        a_axis, b_axis = a_labels.index(label), b_labels.index(label)
        if a.shape[a_axis] == 1:
            b = total(b, (b_axis,), keepdims=True)
        elif b.shape[b_axis] == 1:
            a = total(a, (a_axis,), keepdims=True)
    return a, b


def _extents(x: Array, labels: Labels, group: Sequence[int]) -> list[int]:
    return [x.shape[labels.index(label)] for label in group]


def _arranged(
    x: Array, labels: Labels, batch: Sequence[int], first: Sequence[int], second: Sequence[int]
) -> Array:
    """Bring axes into the order batch, first, second, and merge each of the last two groups into one axis."""
    ordered = x.transpose([labels.index(label) for label in (*batch, *first, *second)])
    merged = [math.prod(_extents(x, labels, group)) for group in (first, second)]
    return ordered.reshape((*ordered.shape[: len(batch)], *merged))
