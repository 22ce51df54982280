"""Layers of torch.fft: eighteen transforms that differ in direction, in their real side, and in their dimensions.

real side     one dim    two dims     any dims
none          fft ifft   fft2 ifft2   fftn ifftn
the signal    rfft       rfft2        rfftn        real to half a spectrum
              irfft      irfft2       irfftn       and back
the spectrum  hfft       hfft2        hfftn        half a signal to a real spectrum
              ihfft      ihfft2       ihfftn       and back
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from engine.binding.arguments import Ints
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import fourier
from engine.kernels.axes import axis, checked_shape
from engine.kernels.casting import cast
from engine.kernels.promotion import Dtype, floating, real_dtype
from engine.spec import TensorSpec

FourierRoutine: TypeAlias = Callable[..., Array]


@dataclass(frozen=True)
class Transform:
    """Parameters that distinguish the transforms.

    Attributes:
        kernel: the routine for its kind.
        inverse: whether it is the one back.
    """

    kernel: FourierRoutine
    inverse: bool

    @property
    def gives_half(self) -> bool:
        """Whether the last dimension of the result is the half of a spectrum."""
        return self.kernel is fourier.real_to_complex

    @property
    def takes_half(self) -> bool:
        """Whether the last dimension of the input is the half of a spectrum."""
        return self.kernel is fourier.complex_to_real

    def sizes(self, shape: tuple[int, ...], dims: Ints, given: Ints | None) -> tuple[int, ...]:
        """Return the signal's length along each of `dims`; -1 leaves one to the shape."""
        natural = [shape[dim] for dim in dims]
        if self.takes_half and natural:
            natural[-1] = 2 * (natural[-1] - 1)
        chosen = [own if size == -1 else size for own, size in zip(natural, given or natural, strict=True)]
        if any(size < 1 for size in chosen):
            raise ArgumentError(
                "input", f"got shape {shape}, transformed over {tuple(chosen)} points", "at least 1"
            )
        return tuple(chosen)

    def result(self, input: TensorSpec, dims: Ints, given: Ints | None) -> TensorSpec:
        """Return the spec of the result."""
        dtype = _transformed_dtype(input.dtype)
        if self.gives_half and dtype.kind == "c":
            raise ArgumentError("input", f"got dtype {input.dtype}", "a real tensor")
        sizes = list(self.sizes(input.shape, dims, given))
        if self.gives_half:
            sizes[-1] = sizes[-1] // 2 + 1
        shape = list(input.shape)
        for dim, size in zip(dims, sizes, strict=True):
            shape[dim] = size
        real = real_dtype(dtype)
        return TensorSpec(
            checked_shape(shape), real if self.takes_half else np.result_type(real, np.complex64)
        )

    def __call__(self, input: Array, dims: Ints, given: Ints | None, norm: str | None) -> Array:
        """Transform `input`."""
        values = cast(input, _transformed_dtype(input.dtype))
        if not input.size:  # numpy's transforms of nothing give what was in memory
            empty = self.result(TensorSpec(input.shape, input.dtype), dims, given)
            return np.zeros(empty.shape, empty.dtype)
        if not dims:
            return values.astype(np.result_type(values, np.complex64))
        sizes = self.sizes(input.shape, dims, given)
        return self.kernel(values, sizes, dims, _norm(norm), inverse=self.inverse)


def _transformed_dtype(dtype: Dtype) -> Dtype:
    result = floating(dtype)
    if result == np.float16:
        raise ArgumentError("input", "got dtype float16", "float32, float64, complex64 or complex128")
    return result


def _norm(norm: str | None) -> fourier.Norm:
    for known in fourier.NORMS:
        if (norm or "backward") == known:
            return known
    raise ArgumentError("norm", f"got {norm!r}", f"one of {', '.join(fourier.NORMS)}")


def _dims(rank: int, dim: Ints | None, s: Ints | None) -> tuple[int, ...]:
    """Return the dimensions to transform: all of them by default, or as many of the last as `s` has sizes."""
    if dim is None:
        count = rank if s is None else len(s)
        if count > rank:
            raise ArgumentError("s", f"got {s}", f"at most {rank} sizes")
        return tuple(range(rank - count, rank))
    if s is not None and len(s) != len(dim):
        raise ArgumentError("s", f"got {s}", f"{len(dim)} sizes")
    dims = tuple(axis(place, rank) for place in dim)
    if len(set(dims)) != len(dims) or (dims and not rank):
        raise ArgumentError("dim", f"got {dim}", "every dimension once")
    return dims


def _register(name: str, transform: Transform) -> None:
    """Register the three layers of a transform: over one dimension, over two, over any."""

    def infer_one(input: TensorSpec, n: int | None, dim: int, norm: str | None) -> TensorSpec:
        _norm(norm)
        if n is not None and n < 1:
            raise ArgumentError("n", f"got {n}", "at least 1")
        return transform.result(input, _dims(input.rank, (dim,), None), None if n is None else (n,))

    def one(input: Array, n: int | None = None, dim: int = -1, norm: str | None = None) -> Array:
        return transform(input, _dims(input.ndim, (dim,), None), None if n is None else (n,), norm)

    def infer_many(input: TensorSpec, s: Ints | None, dim: Ints | None, norm: str | None) -> TensorSpec:
        _norm(norm)
        dims = _dims(input.rank, dim, s)
        if not dims and transform.kernel is not fourier.complex_to_complex:
            raise ArgumentError("dim", "got none", "at least one dimension")
        return transform.result(input, dims, s)

    def two(
        input: Array, s: Ints | None = None, dim: Ints | None = (-2, -1), norm: str | None = None
    ) -> Array:
        return transform(input, _dims(input.ndim, dim, s), s, norm)

    def many(input: Array, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None) -> Array:
        return transform(input, _dims(input.ndim, dim, s), s, norm)

    layer(f"torch.fft.{name}", infer=infer_one)(one)
    layer(f"torch.fft.{name}2", infer=infer_many)(two)
    layer(f"torch.fft.{name}n", infer=infer_many)(many)


_register("fft", Transform(fourier.complex_to_complex, inverse=False))
_register("ifft", Transform(fourier.complex_to_complex, inverse=True))
_register("rfft", Transform(fourier.real_to_complex, inverse=False))
_register("irfft", Transform(fourier.complex_to_real, inverse=True))
_register("hfft", Transform(fourier.complex_to_real, inverse=False))
_register("ihfft", Transform(fourier.real_to_complex, inverse=True))
