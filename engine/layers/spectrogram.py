"""Layers of torchaudio: the spectrogram of waveforms, and waveforms from a spectrogram.

They are `stft` and `istft` of any number of waveforms, with padding, scaling and a power of the magnitude.
"""

import numpy as np

from engine.binding.arguments import Number
from engine.binding.registry import layer
from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels.promotion import real_dtype
from engine.kernels.stft import root_energy
from engine.layers import stft
from engine.layers.checks import check_kind, check_min_rank
from engine.spec import TensorSpec


def _check_normalized(normalized: bool | str) -> None:
    if isinstance(normalized, str) and normalized not in ("frame_length", "window"):
        raise ArgumentError("normalized", f"got {normalized!r}", "a bool, 'frame_length' or 'window'")


def _by_frame(normalized: bool | str) -> bool:
    """Return whether the spectrum is scaled by the root of the frame's length; see `_by_window`."""
    _check_normalized(normalized)
    return normalized == "frame_length"


def _by_window(normalized: bool | str) -> bool:
    """Return whether the spectrum is scaled by the root of the window's energy, as with True."""
    return normalized is True or normalized == "window"


def _infer_spectrogram(
    waveform: TensorSpec,
    window: TensorSpec,
    n_fft: int,
    hop_length: int,
    win_length: int,
    power: Number | None,
    normalized: bool | str,
    pad: int,
    center: bool,
    pad_mode: str,
    onesided: bool,
) -> TensorSpec:
    check_min_rank("waveform", waveform, 1)
    if pad < 0:
        raise ArgumentError("pad", f"got {pad}", "no negative number")
    flat = waveform.with_shape((1, waveform.shape[-1] + 2 * pad))
    _check_normalized(normalized)
    spectrum = stft.infer_stft(
        flat,
        n_fft,
        hop_length,
        win_length,
        window,
        center=center,
        pad_mode=pad_mode,
        onesided=onesided,
        return_complex=True,
        align_to_window=None,
    )
    shape = (*waveform.shape[:-1], *spectrum.shape[-2:])
    return TensorSpec(shape, spectrum.dtype if power is None else real_dtype(spectrum.dtype))


@layer("torchaudio.functional.spectrogram", infer=_infer_spectrogram)
def spectrogram(
    waveform: Array,
    window: Array,
    n_fft: int,
    hop_length: int,
    win_length: int,
    power: int | float | None = 2.0,
    normalized: bool | str = False,
    pad: int = 0,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
) -> Array:
    """Transform waveforms (…, samples) into spectra (…, frequencies, frames).

    `power` 1 gives magnitudes, 2 their squares, None the complex spectrum.
    """
    samples = waveform.shape[-1]
    flat = np.pad(waveform.reshape(-1, samples), ((0, 0), (pad, pad)))
    frame = _by_frame(normalized)
    spectrum = stft.stft(
        flat, n_fft, hop_length, win_length, window, center, pad_mode, frame, onesided, return_complex=True
    )
    spectrum = spectrum.reshape(*waveform.shape[:-1], *spectrum.shape[-2:])
    if _by_window(normalized):
        spectrum = spectrum / root_energy(window)
    if power is None:
        return spectrum
    magnitude = np.abs(spectrum)
    return magnitude if power == 1 else magnitude**power


def _infer_inverse_spectrogram(
    spectrogram: TensorSpec,
    window: TensorSpec,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool | str,
    length: int | None,
    pad: int,
    center: bool,
    onesided: bool,
) -> TensorSpec:
    check_kind("spectrogram", spectrogram, "c")
    check_min_rank("spectrogram", spectrogram, 2)
    if pad < 0:
        raise ArgumentError("pad", f"got {pad}", "no negative number")
    padded = None if length is None else length + 2 * pad
    flat = spectrogram.with_shape((1, *spectrogram.shape[-2:]))
    _check_normalized(normalized)
    waveform = stft.infer_istft(
        flat,
        n_fft,
        hop_length,
        win_length,
        window,
        center=center,
        onesided=onesided,
        length=padded,
        return_complex=False,
    )
    samples = waveform.shape[-1] if length is None else length
    return waveform.with_shape((*spectrogram.shape[:-2], samples))


@layer("torchaudio.functional.inverse_spectrogram", infer=_infer_inverse_spectrogram)
def inverse_spectrogram(
    spectrogram: Array,
    window: Array,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool | str = False,
    length: int | None = None,
    pad: int = 0,
    center: bool = True,
    onesided: bool = True,
) -> Array:
    """Put waveforms (…, samples) together again from complex spectra (…, frequencies, frames)."""
    scaled = spectrogram * root_energy(window) if _by_window(normalized) else spectrogram
    padded = None if length is None else length + 2 * pad
    waveform = stft.istft(
        scaled.reshape(-1, *scaled.shape[-2:]),
        n_fft,
        hop_length,
        win_length,
        window,
        center,
        _by_frame(normalized),
        onesided,
        padded,
    )
    if length is not None and pad:
        waveform = waveform[:, pad:-pad]
    return waveform.reshape(*spectrogram.shape[:-2], -1)
