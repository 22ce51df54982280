"""Layers that draw random numbers: randn, randn_like, normal.

Each takes a `seed`, which PNNX never writes but which may be added to the operator in the file. With a seed every
run draws the same numbers; without one every run draws new ones, as in PyTorch. The numbers are numpy's, not those
that PyTorch draws from the same seed: only their distribution is the same.
"""

import numpy as np

from engine.binding.arguments import DType, Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.axes import checked_shape
from engine.kernels.promotion import FLOAT32
from engine.spec import TensorSpec


def _checked(shape: tuple[int, ...], dtype: DType, seed: int | None) -> TensorSpec:
    if dtype.kind not in "fc":
        raise ArgumentError("dtype", f"got {dtype}", "a floating point or complex dtype")
    if seed is not None and seed < 0:
        raise ArgumentError("seed", f"got {seed}", "no negative number")
    return TensorSpec(checked_shape(shape), dtype)


def _draw(shape: tuple[int, ...], dtype: DType, seed: int | None) -> Array:
    """Draw from the standard normal distribution; complex numbers have a variance of 1 in all."""
    _checked(shape, dtype, seed)
    generator = np.random.default_rng(seed)
    if dtype.kind == "c":
        parts = generator.standard_normal((2, *shape)) * np.sqrt(0.5)
        return np.asarray(parts[0] + 1j * parts[1], dtype)
    wide = np.float64 if dtype.itemsize == 8 else np.float32
    return np.asarray(generator.standard_normal(shape, wide), dtype)


def _infer_randn(size: Ints, dtype: DType | None, seed: int | None) -> TensorSpec:
    return _checked(size, dtype or FLOAT32, seed)


@layer("torch.randn", infer=_infer_randn)
def randn(size: Ints, dtype: DType | None = None, seed: int | None = None) -> Array:
    """Draw from the standard normal distribution."""
    return _draw(size, dtype or FLOAT32, seed)


def _infer_randn_like(input: TensorSpec, dtype: DType | None, seed: int | None) -> TensorSpec:
    return _checked(input.shape, dtype or input.dtype, seed)


@layer("torch.randn_like", infer=_infer_randn_like)
def randn_like(input: Array, dtype: DType | None = None, seed: int | None = None) -> Array:
    """Draw from the standard normal distribution in the shape of `input`."""
    return _draw(input.shape, dtype or input.dtype, seed)


def _infer_normal(input: TensorSpec, std: float, seed: int | None) -> TensorSpec:
    if std < 0:
        raise ArgumentError("std", f"got {std}", "no negative number")
    return _checked(input.shape, input.dtype, seed)


@layer("torch.normal", infer=_infer_normal)
def normal(input: Array, mean: float = 0.0, std: float = 1.0, seed: int | None = None) -> Array:
    """Draw from the normal distribution of `mean` and `std` in the shape and dtype of `input`."""
    return np.asarray(_draw(input.shape, input.dtype, seed) * std + mean, input.dtype)
