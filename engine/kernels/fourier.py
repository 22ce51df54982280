"""Fourier transforms over several dimensions, real ones included, in single or double precision.

A real signal of n points has a spectrum of n // 2 + 1 points; the rest mirrors them.
"""

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import numpy as np

from engine.dtypes import Array

Norm: TypeAlias = Literal["backward", "forward", "ortho"]
"""The direction scaled by 1/n: backward, forward, or both by its square root."""

NORMS: Final[tuple[Norm, ...]] = ("backward", "forward", "ortho")
_SWAPPED: Final[dict[Norm, Norm]] = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _norm(name: Norm, swap: bool) -> Norm:
    return _SWAPPED[name] if swap else name


def complex_to_complex(
    x: Array, sizes: Sequence[int], axes: Sequence[int], norm: Norm, *, inverse: bool
) -> Array:
    """Transform along `axes`, cut or padded with zeros to `sizes` first."""
    transform = np.fft.ifftn if inverse else np.fft.fftn
    return transform(x, sizes, axes, norm=norm)


def real_to_complex(
    x: Array, sizes: Sequence[int], axes: Sequence[int], norm: Norm, *, inverse: bool
) -> Array:
    """Transform a real signal into the half of its spectrum along the last of `axes`.

    Args:
        x: real array.
        sizes: per axis the length of the signal, which is cut or padded with zeros to it.
        axes: axes to transform.
        norm: one of `NORMS`.
        inverse: take the signal for a spectrum and transform it back.
    """
    half = np.fft.rfftn(x, sizes, axes, norm=_norm(norm, inverse))
    return np.asarray(np.conj(half) if inverse else half)


def complex_to_real(
    x: Array, sizes: Sequence[int], axes: Sequence[int], norm: Norm, *, inverse: bool
) -> Array:
    """Transform half a spectrum along the last of `axes` into a real signal.

    Args:
        x: complex or real array.
        sizes: per axis the length of the signal.
        axes: axes to transform.
        norm: one of `NORMS`.
        inverse: whether the transform is the one back.
    """
    half = x if inverse else np.conj(x)
    return np.asarray(np.fft.irfftn(half, sizes, axes, norm=_norm(norm, not inverse)))
