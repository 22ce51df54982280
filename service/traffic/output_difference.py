"""How far the outputs of two versions lie apart."""

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from engine import Array
from service.repository.loaded_model import LoadedModel


def compare_outputs(answered: Sequence[Array], others: Sequence[Array]) -> tuple[float, float]:
    """Compare outputs, in order. NaN is equal to NaN, and an infinity to itself.

    Args:
        answered: what a client was answered; the reference.
        others: what the other version computed of the same inputs.

    Returns:
        The largest absolute difference; and the largest over the outputs of that divided by the largest finite
        magnitude that was answered, or undivided where that is 0. Both are infinite where shapes or dtypes differ, or
        only one side is a number.
    """
    if len(answered) != len(others):
        return inf, inf
    pairs = [_compare(wanted, other) for wanted, other in zip(answered, others, strict=True)]
    return max((absolute for absolute, _ in pairs), default=0.0), max(
        (part for _, part in pairs), default=0.0
    )


def count_other_labels(
    model: LoadedModel, answered: Sequence[Array], other: LoadedModel, others: Sequence[Array]
) -> int:
    """Return for how many items two versions find another label most probable; 0 where their tasks find no labels.

    Raises:
        ServiceError: a task cannot read the outputs.
    """
    ours, theirs = model.task.predict(answered, (), {}), other.task.predict(others, (), {})
    if ours is None or theirs is None:
        return 0
    if len(ours) != len(theirs):
        return max(len(ours), len(theirs))
    return sum(_first_label(one) != _first_label(two) for one, two in zip(ours, theirs, strict=True))


def _first_label(predictions: Sequence[Any]) -> object:
    return getattr(predictions[0], "label", None) if predictions else None


def _compare(wanted: Array, other: Array) -> tuple[float, float]:
    """Return the largest absolute difference, and that relative to what is wanted."""
    if wanted.shape != other.shape or wanted.dtype != other.dtype:
        return inf, inf
    if wanted.dtype.kind not in "biufc":
        different = 0.0 if np.array_equal(wanted, other) else inf
        return different, different
    # equal ones need no arithmetic: infinities, NaN, and integers that a float does not hold
    differ = (wanted != other) & ~((wanted != wanted) & (other != other))  # noqa: PLR0124  # NaN alone is not itself
    if not differ.any():
        return 0.0, 0.0
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(wanted[differ].astype(wide) - other[differ].astype(wide))
        magnitudes = np.abs(wanted.astype(wide))
    absolute = inf if not np.isfinite(apart).all() else float(apart.max())
    scale = float(np.max(magnitudes, initial=0.0, where=np.isfinite(magnitudes)))
    return absolute, absolute / scale if scale else absolute
