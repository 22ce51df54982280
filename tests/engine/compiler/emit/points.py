"""Numbers of all sizes, to try functions of one argument on."""

import math

import numpy as np

from engine.dtypes import Array


def _binades() -> Array:
    """Random float32 of every exponent and sign, the borders, and what is not a number."""
    rng = np.random.default_rng(0)
    exponents = np.repeat(np.arange(255, dtype=np.uint32), 256)
    bits = exponents << 23 | rng.integers(0, 1 << 23, exponents.size, dtype=np.uint32)
    positive = np.concatenate([bits.view(np.float32), np.linspace(0, 128, 32768, dtype=np.float32)])
    special = np.array([0, math.inf, math.nan, 1, 2.0**-126, 2.0**-149, 3.4e38, 88.72], np.float32)
    values = np.concatenate([positive, special])
    return np.concatenate([values, -values])


POINTS = _binades()
