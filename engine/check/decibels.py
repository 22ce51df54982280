"""The signal-to-noise ratio of a tensor against its reference."""

import numpy as np

from engine.dtypes import Array


def decibels(ours: Array, reference: Array) -> float:
    """Return the signal-to-noise ratio of a tensor against its reference; infinite where there is no difference.

    What is not finite in the reference does not count.
    """
    known = np.isfinite(reference)
    ours, reference = ours[known].astype(np.float64), reference[known].astype(np.float64)
    if not np.isfinite(ours).all():
        return -np.inf
    signal, noise = np.square(reference).sum(), np.square(ours - reference).sum()
    with np.errstate(divide="ignore"):
        return float(10 * np.log10(signal / noise)) if noise else float(np.inf)
