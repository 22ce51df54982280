"""Compares outputs with PyTorch's."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine import Array

_TIMES, _LEAST, _MAX = 10.0, 1e-5, 1e-3
_UNKNOWN = 1e-4
"""Limit for networks that do not compute in float64."""


def run(module: Any, arrays: Sequence[Array]) -> list[Array]:
    """Return PyTorch's outputs."""
    import torch

    with torch.inference_mode():
        outputs = module(*(torch.from_numpy(array) for array in arrays))
    return [output.numpy() for output in ([outputs] if isinstance(outputs, torch.Tensor) else outputs)]


def difference(outputs: Sequence[Array], wanted: Sequence[Array]) -> float:
    """Return the largest difference, relative to the largest of its output.

    Raises:
        ValueError: there are more or fewer outputs, or one has another shape.
    """
    if [array.shape for array in outputs] != [array.shape for array in wanted]:
        shapes = [array.shape for array in outputs], [array.shape for array in wanted]
        raise ValueError("outputs have shapes {} in place of {}".format(*shapes))
    apart = [
        np.abs(ours.astype(np.float64) - theirs).max(initial=0.0) / (np.abs(theirs).max(initial=0.0) or 1.0)
        for ours, theirs in zip(outputs, wanted, strict=True)
    ]
    return float(max(apart, default=0.0))


def limit(module: Any, arrays: Sequence[Array]) -> float:
    """Return the largest difference that float32 explains: ten times what PyTorch's own outputs are off float64's."""
    wider = [array.astype(np.float64) if array.dtype == np.float32 else array for array in arrays]
    try:
        exact = run(copy.deepcopy(module).double(), wider)
    except RuntimeError:  # it makes float32 of its own
        return _UNKNOWN
    return min(_MAX, max(_LEAST, _TIMES * difference(run(module, arrays), exact)))
