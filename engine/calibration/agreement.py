"""Comparison of outputs and intermediate tensors with those of float32."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.dtypes import Array


@dataclass(frozen=True, slots=True)
class Likeness:
    """How tensors compare with their reference.

    Attributes:
        ratio: signal-to-noise ratio, 10 log10(sum of reference² / sum of difference²), in decibels; infinite where
            there is no difference.
        cosine: cosine of the angle between the two, taken as vectors.
    """

    ratio: float
    cosine: float


class LikenessSum:
    """Compares tensors with references, over many of them, where the references are finite."""

    def __init__(self) -> None:
        self._signal = self._noise = self._ours = self._product = 0.0

    def add(self, ours: Array, reference: Array) -> None:
        """Compare one tensor more."""
        known = np.isfinite(reference)
        one, other = ours[known].astype(np.float64), reference[known].astype(np.float64)
        self._signal += float(other @ other)
        if not np.isfinite(one).all():
            self._noise = np.inf
            return
        self._ours += float(one @ one)
        self._product += float(one @ other)
        self._noise += float(np.square(one - other).sum())

    @property
    def likeness(self) -> Likeness:
        """The result."""
        ratio = np.inf if not self._noise else -np.inf
        if 0 < self._noise < np.inf and self._signal:
            ratio = 10 * float(np.log10(self._signal / self._noise))
        norms = float(np.sqrt(self._signal) * np.sqrt(self._ours))
        return Likeness(ratio, self._product / norms if norms else float(not self._noise))

    @property
    def error(self) -> float:
        """Norm of the difference over that of the reference."""
        return float(np.sqrt(self._noise / self._signal)) if self._signal else float(self._noise > 0)


def same_class(ours: Array, reference: Array) -> tuple[int, int]:
    """Return for how many rows the largest element stands at the same place, and how many rows there are.

    Rows lie along axis 1 of (rows, classes) and of images (rows, classes, height, width), else along the last axis. One
    that holds NaN in the reference has no class, and does not count.
    """
    if reference.ndim < 2:
        ours, reference = ours.reshape(1, -1), reference.reshape(1, -1)
    axis = 1 if reference.ndim in (2, 4) else reference.ndim - 1
    has_class = ~np.isnan(reference).any(axis)
    same = has_class & (ours.argmax(axis) == reference.argmax(axis))
    return int(same.sum()), int(has_class.sum())


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a model's outputs compare with those of float32, over all examples.

    Attributes:
        agreement: part of the rows of the first output whose largest element stands at the same place.
        error: norm of the difference over that of the reference, the largest of all outputs.
        ratio: signal-to-noise ratio in decibels, the least of all outputs.
    """

    agreement: float
    error: float
    ratio: float


def compare_runs(runs: Sequence[Sequence[Array]], references: Sequence[Sequence[Array]]) -> Outcome:
    """Compare the outputs of runs with those of float32 on the same examples."""
    sums = [LikenessSum() for _ in references[0]]
    same = rows = 0
    for outputs, wanted in zip(runs, references, strict=True):
        for total, ours, reference in zip(sums, outputs, wanted, strict=True):
            total.add(ours, reference)
        matches, count = same_class(outputs[0], wanted[0])
        same, rows = same + matches, rows + count
    return Outcome(
        agreement=same / rows if rows else 1.0,
        error=max(total.error for total in sums),
        ratio=min(total.likeness.ratio for total in sums),
    )
