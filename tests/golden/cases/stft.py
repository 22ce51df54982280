"""The short-time Fourier transform and its inverse."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, function, tensor


def forward(name: str, *inputs: Input, also: Any = (), n_fft: int = 8, **options: Any) -> LayerCase:
    """Make a case of torch.stft; a second input is the window."""
    options = {"return_complex": True} | options

    def call(torch: Any, x: Any, window: Any = None) -> Any:
        return torch.stft(x, n_fft, window=window, **options)

    return function("torch.stft", name, call, *inputs, also=also)


def inverse(name: str, *inputs: Input, also: Any = (), n_fft: int = 8, **options: Any) -> LayerCase:
    """Make a case of torch.istft; a second input is the window."""

    def call(torch: Any, x: Any, window: Any = None) -> Any:
        return torch.istft(x, n_fft, window=window, **options)

    return function("torch.istft", name, call, *inputs, also=also)


WINDOW = f32(8, low=0.25, high=1)
SHORT = f32(5, low=0.25, high=1)

CASES: list[LayerCase] = [
    forward("plain", f32(2, 20), also=((f32(1, 31),),)),
    forward("vector", f32(21)),
    forward("window", f32(2, 20), WINDOW),
    forward("short_window", f32(2, 20), SHORT, win_length=5, hop_length=3),
    forward("not_centred", f32(2, 20), WINDOW, center=False, hop_length=3),
    forward("odd", f32(2, 20), n_fft=7, hop_length=2),
    forward("constant_padding", f32(2, 20), pad_mode="constant"),
    forward("replicate_padding", f32(2, 20), pad_mode="replicate"),
    forward("circular_padding", f32(2, 20), pad_mode="circular"),
    forward("normalized", f32(2, 20), WINDOW, normalized=True),
    forward("twosided", f32(2, 20), onesided=False),
    forward("complex_signal", tensor("c64", 2, 20), WINDOW),
    forward("double", tensor("f64", 2, 20)),
    forward("real_output", f32(2, 20), return_complex=False),
    inverse("plain", tensor("c64", 2, 5, 9), also=((tensor("c64", 1, 5, 4),),)),
    inverse("matrix", tensor("c64", 5, 9)),
    inverse("window", tensor("c64", 2, 5, 9), WINDOW),
    inverse("short_window", tensor("c64", 2, 5, 9), SHORT, win_length=5, hop_length=2),
    inverse("not_centred", tensor("c64", 2, 5, 9), WINDOW, center=False, hop_length=4),
    inverse("odd_hop", tensor("c64", 2, 5, 9), WINDOW, hop_length=3),
    inverse("normalized", tensor("c64", 2, 5, 9), WINDOW, normalized=True),
    inverse("twosided", tensor("c64", 2, 8, 9), WINDOW, onesided=False),
    inverse("complex_output", tensor("c64", 2, 8, 9), WINDOW, onesided=False, return_complex=True),
    inverse("shorter", tensor("c64", 2, 5, 9), WINDOW, length=11),
    inverse("longer", tensor("c64", 2, 5, 9), WINDOW, length=40),
    inverse("double", tensor("c128", 5, 9)),
]
