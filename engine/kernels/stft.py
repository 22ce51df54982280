"""The short-time Fourier transform and its inverse: windows cut out of a signal, and put back together.

A signal (…, samples) becomes frames (…, frame, samples of a frame), one every `hop` samples, each weighted with a
window; the inverse adds the frames up where they overlap and divides by what the squared windows add up to.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from engine.dtypes import Array
from engine.kernels.fourier import Norm


def forward(signal: Array, window: Array, hop: int, *, onesided: bool, normalized: bool) -> Array:
    """Return the spectrum (…, frequencies, frames).

    Args:
        signal: (…, samples), real or complex, at least as long as the window.
        window: (n_fft,).
        hop: samples from one frame to the next.
        onesided: keep only the n_fft // 2 + 1 frequencies that determine a real signal.
        normalized: scale by the square root of n_fft.
    """
    size = window.shape[0]
    frames = sliding_window_view(signal, size, -1)[..., ::hop, :] * window
    transform = np.fft.rfft if onesided else np.fft.fft
    spectrum = transform(frames, axis=-1, norm="ortho" if normalized else "backward")
    return np.asarray(np.moveaxis(spectrum, -1, -2))


def inverse(
    spectrum: Array, window: Array, hop: int, *, normalized: bool, complex_output: bool
) -> tuple[Array, Array]:
    """Return the overlapping frames' sum (…, samples), and what the squared windows add up to (samples,).

    Args:
        spectrum: (…, frequencies, frames); for a real output the first n_fft // 2 + 1 frequencies count.
        window: (n_fft,), real unless the output is complex.
        hop: samples from one frame to the next.
        normalized: whether the spectrum was scaled by the square root of n_fft.
        complex_output: keep the imaginary part; needs all frequencies.
    """
    size = window.shape[0]
    norm: Norm = "ortho" if normalized else "backward"
    bins = np.moveaxis(spectrum, -2, -1)
    frames: Array
    if complex_output:
        frames = np.fft.ifft(bins, size, norm=norm)
    else:
        frames = np.fft.irfft(bins[..., : size // 2 + 1], size, norm=norm)
    count = spectrum.shape[-1]
    envelope = np.broadcast_to(np.square(window), (count, size))
    return overlap_add(frames * window, hop), overlap_add(envelope, hop)


def overlap_add(frames: Array, hop: int) -> Array:
    """Add up frames (…, frame, samples of a frame) that begin `hop` samples apart; returns (…, samples).

    Each frame is cut into strips of `hop` samples; the k-th strips of all frames, side by side, are one row to add.
    """
    *rest, count, size = frames.shape
    strips = -(-size // hop)
    padding = [(0, 0)] * (frames.ndim - 1) + [(0, strips * hop - size)]
    cut = np.pad(frames, padding).reshape(*rest, count, strips, hop)
    total = np.zeros((*rest, count + strips - 1, hop), frames.dtype)
    for strip in range(strips):
        total[..., strip : strip + count, :] += cut[..., strip, :]
    return total.reshape(*rest, -1)[..., : (count - 1) * hop + size]


def centred(window: Array, size: int) -> Array:
    """Return a window padded with zeros on both sides to `size`."""
    left = (size - window.shape[0]) // 2
    return np.pad(window, (left, size - window.shape[0] - left))


def root_energy(window: Array) -> Array:
    """Return the square root of the sum of the squared window."""
    return np.asarray(np.sqrt(np.sum(np.square(window))))
