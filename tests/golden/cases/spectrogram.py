"""Spectrograms as torchaudio defines them, written in PyTorch's own functions; the exporter finds them again."""

from typing import Any

from tests.golden.case import Input, LayerCase, f32, tensor

SPECTROGRAM = "torchaudio.functional.spectrogram"
INVERSE = "torchaudio.functional.inverse_spectrogram"


def spectrum(torch: Any, waveform: Any, window: Any, options: dict[str, Any]) -> Any:
    """Do what `torchaudio.functional.spectrogram` does."""
    if options["pad"]:
        waveform = torch.nn.functional.pad(waveform, (options["pad"], options["pad"]), "constant")
    shape = waveform.size()
    result = torch.stft(
        input=waveform.reshape(-1, shape[-1]),
        n_fft=options["n_fft"],
        hop_length=options["hop"],
        win_length=options["win"],
        window=window,
        center=options["center"],
        pad_mode=options["pad_mode"],
        normalized=options["normalized"] == "frame_length",
        onesided=options["onesided"],
        return_complex=True,
    )
    result = result.reshape(shape[:-1] + result.shape[-2:])
    if options["normalized"] == "window":
        result /= window.pow(2.0).sum().sqrt()
    if options["power"] is None:
        return result
    return result.abs() if options["power"] == 1.0 else result.abs().pow(options["power"])


def waveform(torch: Any, spectrogram: Any, window: Any, options: dict[str, Any]) -> Any:
    """Do what `torchaudio.functional.inverse_spectrogram` does."""
    if options["normalized"] == "window":
        spectrogram = spectrogram * window.pow(2.0).sum().sqrt()
    shape = spectrogram.size()
    result = torch.istft(
        input=spectrogram.reshape(-1, shape[-2], shape[-1]),
        n_fft=options["n_fft"],
        hop_length=options["hop"],
        win_length=options["win"],
        window=window,
        center=options["center"],
        normalized=options["normalized"] == "frame_length",
        onesided=options["onesided"],
        length=None,
        return_complex=False,
    )
    return result.reshape(shape[:-2] + result.shape[-1:])


def case(kind: str, name: str, *inputs: Input, also: Any = (), win: int = 16, **changed: Any) -> LayerCase:
    """Make a case whose window is a buffer of the model."""
    options = {"n_fft": 16, "hop": 5, "power": 2.0, "win": win, "normalized": False, "pad": 0} | changed
    options = {"center": True, "pad_mode": "reflect", "onesided": True} | options
    compute = spectrum if kind == SPECTROGRAM else waveform

    def build(torch: Any) -> Any:
        class Wrapper(torch.nn.Module):  # type: ignore[misc]  # torch is Any here
            def __init__(self) -> None:
                super().__init__()
                self.register_buffer("window", torch.hann_window(win) + 0.1)

            def forward(self, x: Any) -> Any:
                return compute(torch, x, self.window, options)

        return Wrapper()

    return LayerCase(kind, name, build, inputs, also, rtol=1e-3, atol=1e-4)


CASES: list[LayerCase] = [
    case(SPECTROGRAM, "power", f32(2, 40), also=((f32(2, 51),),)),
    case(SPECTROGRAM, "vector", f32(40)),
    case(SPECTROGRAM, "three_dims", f32(2, 3, 40)),
    case(SPECTROGRAM, "magnitude", f32(2, 40), power=1.0),
    case(SPECTROGRAM, "complex", f32(2, 40), power=None),
    case(SPECTROGRAM, "by_frame", f32(2, 40), normalized="frame_length"),
    case(SPECTROGRAM, "by_window", f32(2, 40), normalized="window", win=12),
    case(SPECTROGRAM, "padded", f32(2, 40), pad=3),
    case(SPECTROGRAM, "not_centred", f32(2, 40), center=False),
    case(SPECTROGRAM, "constant", f32(2, 40), pad_mode="constant"),
    case(SPECTROGRAM, "twosided", f32(2, 40), onesided=False, win=9, hop=4),
    case(INVERSE, "plain", tensor("c64", 2, 9, 7)),
    case(INVERSE, "matrix", tensor("c64", 9, 7)),
    case(INVERSE, "by_frame", tensor("c64", 2, 9, 7), normalized="frame_length"),
    case(INVERSE, "by_window", tensor("c64", 2, 9, 7), normalized="window", win=12),
    case(INVERSE, "twosided", tensor("c64", 2, 16, 7), onesided=False),
]
