"""Arrays that a model is tried on."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from engine import Array
from service.export.errors import ExportError
from service.export.input_spec import InputSpec

_SEED = 0
_TINY, _NOT_FINITE = 27, 255
"""Exponents of float32: of numbers up to 1e-30, and of infinities and NaN."""
_MAX = 1 << 18
"""Largest bound of integers that is looked for; vocabularies are smaller."""

Shapes = Sequence[tuple[int, ...]]
Run = Callable[[Sequence[Array]], list[Array]]


class Trial:
    """Arrays that a model takes: integers over all that it takes, numbers of both signs where it takes these.

    Args:
        specs: the inputs.
        shapes: shapes that the model runs on.
        run: runs the model.

    Raises:
        ExportError: the model does not run; says what it said.
    """

    def __init__(self, specs: Sequence[InputSpec], shapes: Shapes, run: Run) -> None:
        self._specs = specs
        self._low = 0.0
        self._limits = [1] * len(specs)
        run(self.arrays(shapes))
        for place, spec in enumerate(specs):
            if spec.numpy_dtype.kind in "iu" and "mask" not in spec.name:
                self._limits[place] = self._limit(place, shapes, run)
        outputs = run(self.arrays(shapes))
        self._low = -1.0
        if not _are_finite(run(self.arrays(shapes))) and _are_finite(outputs):
            self._low = 0.0  # logarithms and roots

    def arrays(self, shapes: Shapes, place: int = 0) -> list[Array]:
        """Return arrays of these shapes.

        Masks hide the first or the last quarter of a row, alternately.

        Args:
            shapes: of each input.
            place: which of several such arrays; others have other values.
        """
        random = np.random.default_rng(_SEED + place)
        return [
            self._filled(random, spec, shape, limit, place)
            for spec, shape, limit in zip(self._specs, shapes, self._limits, strict=True)
        ]

    def _limit(self, place: int, shapes: Shapes, run: Run) -> int:
        """Return the first integer that an input does not take, or `_MAX`."""

        def takes(number: int) -> bool:
            arrays = self.arrays(shapes)
            arrays[place] = np.full(shapes[place], number, arrays[place].dtype)
            try:
                run(arrays)
            except ExportError:
                return False
            return True

        low, high = 0, 1  # the largest that is known to be taken, the least that is not
        most = min(_MAX, int(np.iinfo(self._specs[place].numpy_dtype).max))
        while high < most and takes(high):
            low, high = high, min(high * 2, most)
        while high - low > 1 and high < most:
            middle = (low + high) // 2
            low, high = (middle, high) if takes(middle) else (low, middle)
        return high

    def _filled(
        self, random: np.random.Generator, spec: InputSpec, shape: tuple[int, ...], limit: int, place: int
    ) -> Array:
        dtype = spec.numpy_dtype
        if "mask" in spec.name:
            return _mask(shape, dtype, place)
        if dtype.kind == "b":
            return random.integers(0, 2, shape).astype(dtype)
        if dtype.kind in "iu":
            return random.integers(0, limit, shape).astype(dtype)
        return random.uniform(self._low, 1.0, shape).astype(dtype)


def flip_last_bits(array: Array) -> Array:
    """Return an array of float32 with its last bits flipped; others, and what is infinite, NaN or tiny, stay."""
    if array.dtype != np.float32:
        return array
    bits = np.ascontiguousarray(array).view(np.int32)
    flipped: Array = bits ^ has_last_bit(bits)
    return flipped.view(np.float32).reshape(array.shape)


def has_last_bit(bits: Any) -> Any:
    """Return of which numbers of float32, given as int32 of numpy or PyTorch, the last bit may be flipped.

    Zeros and tiny numbers have none: they might become denormal, with which processors compute slowly. Flipping does
    not change the exponent, which decides.
    """
    exponent = (bits >> 23) & 255
    return (exponent > _TINY) & (exponent < _NOT_FINITE)


def _mask(shape: tuple[int, ...], dtype: np.dtype[np.generic], place: int) -> Array:
    """Return ones, with zeros in the last quarter of even rows and in the first of odd ones."""
    mask = np.ones(shape, dtype)
    hidden = shape[-1] // 4 if shape else 0
    if not hidden:
        return mask
    rows = mask.reshape(-1, shape[-1])
    rows[place % 2 :: 2, shape[-1] - hidden :] = 0
    rows[1 - place % 2 :: 2, :hidden] = 0
    return mask


def _are_finite(arrays: Sequence[Array]) -> bool:
    return all(bool(np.isfinite(array).all()) for array in arrays)
