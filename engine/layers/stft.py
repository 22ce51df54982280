"""Layers of the short-time Fourier transform: torch.stft and torch.istft."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import stft as kernel
from engine.kernels.axes import checked_shape
from engine.kernels.casting import cast
from engine.kernels.promotion import Dtype, promote, real_dtype
from engine.layers.checks import check_kind
from engine.spec import TensorSpec

PADDING = {"reflect": "reflect", "constant": "constant", "replicate": "edge", "circular": "wrap"}
"""PyTorch's padding modes and numpy's names of them."""

LEAST_ENVELOPE = 1e-11
"""The windows of an inverse transform must add up to more than this everywhere."""


@dataclass(frozen=True)
class Frames:
    """How a signal is cut into frames.

    Attributes:
        n_fft: samples of a frame.
        hop: samples from one frame to the next.
        win: samples of the window, centred in a frame.
    """

    n_fft: int
    hop: int
    win: int

    @staticmethod
    def of(n_fft: int, hop_length: int | None, win_length: int | None, window: Any) -> "Frames":
        """Fill in PyTorch's defaults and check what is given.

        Raises:
            ArgumentError: the numbers do not fit each other.
        """
        if n_fft < 1:
            raise ArgumentError("n_fft", f"got {n_fft}", "at least 1")
        frames = Frames(
            n_fft,
            n_fft // 4 if hop_length is None else hop_length,
            n_fft if win_length is None else win_length,
        )
        if frames.hop < 1:
            raise ArgumentError("hop_length", f"got {frames.hop}", "at least 1")
        if not 1 <= frames.win <= n_fft:
            raise ArgumentError("win_length", f"got {frames.win}", f"from 1 to n_fft {n_fft}")
        if window is not None and window.shape != (frames.win,):
            raise ArgumentError("window", f"got shape {window.shape}", f"shape ({frames.win},)")
        return frames

    def frequencies(self, onesided: bool) -> int:
        """Return how many frequencies a spectrum has."""
        return self.n_fft // 2 + 1 if onesided else self.n_fft

    def samples(self, count: int) -> int:
        """Return how many samples so many frames span."""
        return self.n_fft + self.hop * (count - 1)

    def window(self, window: Array | None, dtype: Dtype) -> Array:
        """Return the window as wide as a frame; ones by default."""
        return kernel.centred(np.ones(self.win, dtype) if window is None else window, self.n_fft)


def _spectrum_dtype(input: TensorSpec | Array, window: TensorSpec | Array | None) -> Dtype:
    dtype = input.dtype if window is None else promote(input.dtype, window.dtype)
    return np.result_type(dtype, np.complex64)


def _is_complex(*tensors: TensorSpec | Array | None) -> bool:
    return any(tensor is not None and tensor.dtype.kind == "c" for tensor in tensors)


def _padding(frames: Frames, center: bool, align_to_window: bool | None) -> tuple[int, int]:
    """Return the samples added before and after the signal."""
    if center:
        return frames.n_fft // 2, frames.n_fft // 2
    spare = frames.n_fft - frames.win if align_to_window else 0
    return spare // 2, spare - spare // 2


def _padded(signal: Array, before: int, after: int, mode: str) -> Array:
    widths = [(0, 0)] * (signal.ndim - 1) + [(before, after)]
    return np.pad(signal, widths, PADDING[mode]) if before or after else signal  # type: ignore[call-overload]


def _frame_count(samples: int, frames: Frames, padding: tuple[int, int], pad_mode: str) -> int:
    """Return how many frames a signal makes."""
    if pad_mode not in PADDING:
        raise ArgumentError("pad_mode", f"got {pad_mode!r}", f"one of {', '.join(PADDING)}")
    widest = {"reflect": samples - 1, "circular": samples, "replicate": 0 if not samples else padding[0]}
    if padding[0] > widest.get(pad_mode, padding[0]):
        raise ArgumentError(
            "input", f"got {samples} samples", f"enough to pad with {padding[0]} by {pad_mode}"
        )
    total = samples + sum(padding)
    if total < frames.n_fft:
        raise ArgumentError("input", f"got {samples} samples", f"enough for a frame of {frames.n_fft}")
    return 1 + (total - frames.n_fft) // frames.hop


def infer_stft(
    input: TensorSpec,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: TensorSpec | None,
    center: bool,
    pad_mode: str,
    onesided: bool | None,
    return_complex: bool | None,
    align_to_window: bool | None,
) -> TensorSpec:
    """Work out the shape of a spectrum; the shape rule of `stft`."""
    check_kind("input", input, "fc")
    if input.rank not in (1, 2):
        raise ArgumentError("input", f"got {input.rank} dimensions", "1 or 2")
    frames = Frames.of(n_fft, hop_length, win_length, window)
    half = not _is_complex(input, window) if onesided is None else onesided
    if half and _is_complex(input, window):
        raise ArgumentError("onesided", "got True", "False for a complex input or window")
    padding = _padding(frames, center, align_to_window)
    count = _frame_count(input.shape[-1], frames, padding, pad_mode if center else "constant")
    spectrum = _spectrum_dtype(input, window)
    shape = checked_shape((*input.shape[:-1], frames.frequencies(half), count), "input")
    if return_complex is False:
        return TensorSpec((*shape, 2), real_dtype(spectrum))
    return TensorSpec(shape, spectrum)


@layer("torch.stft", infer=infer_stft)
def stft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Array:
    """Transform a signal frame by frame into its spectrum (…, frequencies, frames)."""
    frames = Frames.of(n_fft, hop_length, win_length, window)
    half = not _is_complex(input, window) if onesided is None else onesided
    padding = _padding(frames, center, align_to_window)
    signal = _padded(input, *padding, pad_mode if center else "constant")
    weights = frames.window(window, real_dtype(input.dtype))
    spectrum = kernel.forward(signal, weights, frames.hop, onesided=half, normalized=normalized)
    spectrum = cast(spectrum, _spectrum_dtype(input, window))
    return np.stack((spectrum.real, spectrum.imag), -1) if return_complex is False else spectrum


def _output_range(frames: Frames, count: int, center: bool, length: int | None) -> tuple[int, int]:
    """Return where in the sum of frames the output begins and ends; past the sum it is zero."""
    start = frames.n_fft // 2 if center else 0
    if length is not None:
        if length < 0:
            raise ArgumentError("length", f"got {length}", "no negative number")
        return start, start + length
    return start, max(start, frames.samples(count) - start)


def _check_spectrum(name: str, input: TensorSpec, frames: Frames, onesided: bool | None) -> None:
    check_kind(name, input, "c")
    half = frames.n_fft // 2 + 1
    allowed = {None: {half, frames.n_fft}, True: {half}, False: {frames.n_fft}}[onesided]
    if input.shape[-2] not in allowed or not input.shape[-1]:
        expected = f"{' or '.join(map(str, sorted(allowed)))} frequencies and at least one frame"
        raise ArgumentError(name, f"got shape {input.shape}", expected)
    if frames.hop > frames.win:
        raise ArgumentError("hop_length", f"got {frames.hop}", f"at most win_length {frames.win}")


def infer_istft(
    input: TensorSpec,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    window: TensorSpec | None,
    center: bool,
    onesided: bool | None,
    length: int | None,
    return_complex: bool,
) -> TensorSpec:
    """Work out the shape of a signal; the shape rule of `istft`."""
    if input.rank not in (2, 3):
        raise ArgumentError("input", f"got {input.rank} dimensions", "2 or 3")
    frames = Frames.of(n_fft, hop_length, win_length, window)
    _check_spectrum("input", input, frames, onesided)
    if return_complex and (onesided or input.shape[-2] != n_fft):
        raise ArgumentError("return_complex", "got True", "False for a onesided spectrum")
    if not return_complex and _is_complex(window):
        raise ArgumentError("window", "got a complex tensor", "a real one for a real output")
    start, end = _output_range(frames, input.shape[-1], center, length)
    dtype = _spectrum_dtype(input, window)
    shape = checked_shape((*input.shape[:-2], end - start), "length")
    return TensorSpec(shape, dtype if return_complex else real_dtype(dtype))


@layer("torch.istft", infer=infer_istft)
def istft(
    input: Array,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Array:
    """Put the signal together again whose spectrum is (…, frequencies, frames)."""
    del onesided
    frames = Frames.of(n_fft, hop_length, win_length, window)
    start, end = _output_range(frames, input.shape[-1], center, length)
    weights = frames.window(window, real_dtype(input.dtype))
    signal, envelope = kernel.inverse(
        input, weights, frames.hop, normalized=normalized, complex_output=return_complex
    )
    covered = envelope[start:end]
    if not covered.size or np.min(np.abs(covered)) <= LEAST_ENVELOPE:
        raise ArgumentError("window", "adds up to zero somewhere", "windows that overlap on every sample")
    result = signal[..., start:end] / covered
    dtype = _spectrum_dtype(input, window)
    missing = max(0, end - start - result.shape[-1])
    return cast(_padded(result, 0, missing, "constant"), dtype if return_complex else real_dtype(dtype))
