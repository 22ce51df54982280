"""Operators on images and sequences: kernels do all of them, on every vector width, as the reference layers do."""

from pathlib import Path

import numpy as np
import pytest

from engine import RuntimeGraph, TraceLevel
from engine.compiler.emit.target import Target
from engine.compiler.program import programs
from engine.dtypes import Array
from tests.cases import check_each
from tests.engine.compiler.harness import every_target
from tests.engine.compiler.plans import weights_of
from tests.engine.models import make_graph

CONV1D = (
    "nn.Conv1d {0} 1 1 {1} {2} bias=True dilation=({d}) groups={g} kernel_size=({k}) padding={p} "
    "padding_mode={mode} stride=({s}) @weight=({f},{c},{k})f32 @bias=({f})f32"
)
CONV2D = (
    "nn.Conv2d c 1 1 {0} {1} bias=False dilation=(1,1) groups=1 kernel_size=(3,3) padding={p} "
    "padding_mode={mode} stride=(1,1) @weight=(7,5,3,3)f32"
)
PATCHES = (
    "nn.Conv2d c 1 1 x y bias=True dilation=(1,1) groups=1 kernel_size=({0},{1}) padding=(0,0) "
    "padding_mode=zeros stride=({0},{1}) @weight=({2},3,{0},{1})f32 @bias=({2})f32"
)
POOL1D = "nn.{}Pool1d p 1 1 x y ceil_mode={} kernel_size=({}) stride=({}) padding=({}) "
NORM = (
    "nn.BatchNorm1d n 1 1 y z affine=False eps=1e-5 num_features=6 @running_mean=(6)f32 @running_var=(6)f32"
)
UPSAMPLE = "F.interpolate u 1 1 x w mode=nearest scale_factor=(2.0,2.0) $input=x"
SHIFT = "pnnx.Expression e 1 1 x w expr=add(@0,0.25)"


def conv1d(
    filters: int, channels: int, size: int, *, stride: int = 1, padding: str = "(0)", dilation: int = 1,
    groups: int = 1, mode: str = "zeros", names: tuple[str, str, str] = ("c", "x", "y"),
) -> str:  # fmt: skip
    return CONV1D.format(
        *names, f=filters, c=channels // groups, k=size, s=stride, p=padding, d=dilation, g=groups, mode=mode
    )


ACTIVATION = "{} a 1 1 x y $input=x {}"
CASES: dict[str, dict[str, tuple[tuple[int, ...], str]]] = {
    "slopes": {
        "slopes per channel": ((2, 5, 3, 7), "nn.PReLU a 1 1 x y num_parameters=5 @weight=(5)f32"),
        "slopes of a sequence": ((3, 17, 5), "nn.PReLU a 1 1 x y num_parameters=17 @weight=(17)f32"),
        "slopes of vectors": ((3, 6), "nn.PReLU a 1 1 x y num_parameters=6 @weight=(6)f32"),
        "one slope": ((1, 5, 1, 1), "nn.PReLU a 1 1 x y num_parameters=1 @weight=(1)f32"),
        "slopes by an operand": (
            (2, 5, 3, 7),
            "pnnx.Attribute s 0 1 k @data=(5)f32|F.prelu a 2 1 x k y $input=x $weight=k",
        ),
        "slopes after a convolution": (
            (2, 5, 4, 3),
            CONV2D.format("x", "w", p="(1,1)", mode="zeros") + "|nn.PReLU a 1 1 w y @weight=(7)f32",
        ),
        "slopes of rows after a linear layer": (
            (2, 5, 4),
            "nn.Linear l 1 1 x w bias=False in_features=4 out_features=5 @weight=(5,4)f32|"
            "nn.PReLU a 1 1 w y @weight=(5)f32",
        ),
    },
    "activations": {
        "celu": ((2, 3, 7), ACTIVATION.format("F.celu", "alpha=-0.7")),
        "selu": ((2, 3, 7), ACTIVATION.format("F.selu", "")),
        "rrelu": ((2, 3, 7), ACTIVATION.format("F.rrelu", "lower=0.1 upper=0.3")),
        "softplus": ((2, 3, 7), ACTIVATION.format("F.softplus", "beta=1.5 threshold=2.0")),
        "logsigmoid": ((2, 3, 7), ACTIVATION.format("F.logsigmoid", "")),
        "softsign": ((2, 3, 7), ACTIVATION.format("F.softsign", "")),
        "hardshrink": ((2, 3, 7), ACTIVATION.format("F.hardshrink", "lambd=0.4")),
        "softshrink": ((2, 3, 7), ACTIVATION.format("F.softshrink", "lambd=0.4")),
        "threshold": ((2, 3, 7), ACTIVATION.format("F.threshold", "threshold=0.1 value=-3.0")),
    },
    "padding": {
        "zeros around": ((2, 5, 4, 3), "nn.ZeroPad2d p 1 1 x y padding=(1,2,3,0)"),
        "zeros around one pixel": ((1, 17, 1, 1), "nn.ZeroPad2d p 1 1 x y padding=(1,0,0,2)"),
        "zeros of one number": ((2, 5, 4, 3), "nn.ZeroPad2d p 1 1 x y padding=(2)"),
        "a constant around a sequence": ((2, 5, 4), "nn.ConstantPad1d p 1 1 x y padding=(3,1) value=-1.5"),
        "infinity around": ((2, 5, 4, 3), "F.pad p 1 1 x y mode=constant pad=(0,1,0,1) value=-inf $input=x"),
        "crops": ((2, 5, 6, 7), "nn.ConstantPad2d p 1 1 x y padding=(-2,3,1,-4) value=2.5"),
        "crops all there was": ((2, 5, 6, 3), "nn.ConstantPad2d p 1 1 x y padding=(-3,4,0,0) value=2.5"),
        "crops all there was of channels": (
            (2, 3, 4, 3), "F.pad p 1 1 x y mode=constant pad=(1,1,0,0,-3,4) value=2.5 $input=x",
        ),
        "channels around": ((2, 5, 4, 3), "F.pad p 1 1 x y mode=constant pad=(0,0,0,0,2,3) value=0.0 $input=x"),
        "all axes": ((2, 5, 4, 3), "F.pad p 1 1 x y mode=constant pad=(1,-1,0,2,2,3,0,1) value=0.5 $input=x"),
        "a matrix": ((5, 4), "F.pad p 1 1 x y mode=constant pad=(1,2,3,-1) value=None $input=x"),
        "many axes": ((2, 3, 2, 3, 4), "nn.ConstantPad3d p 1 1 x y padding=(1,2,0,1,-1,1) value=4.0"),
        "reflection": ((2, 5, 6, 7), "nn.ReflectionPad2d p 1 1 x y padding=(3,4,5,2)"),
        "reflection with crops": ((2, 5, 6, 7), "F.pad p 1 1 x y mode=reflect pad=(-1,3,2,-3) $input=x"),
        "reflection of a sequence": ((2, 18, 6), "nn.ReflectionPad1d p 1 1 x y padding=(5,1)"),
        "replication": ((2, 1, 1, 1), "nn.ReplicationPad2d p 1 1 x y padding=(2,1,0,3)"),
        "replication with crops": ((2, 3, 4, 5), "nn.ReplicationPad2d p 1 1 x y padding=(-1,2,3,-2)"),
        "wrapped around": ((2, 5, 4, 5), "nn.CircularPad2d p 1 1 x y padding=(2,3,4,1)"),
        "wrapped around with crops": ((2, 5, 4, 5), "nn.CircularPad2d p 1 1 x y padding=(-2,3,-1,2)"),
        "reflection of channels last": (
            (2, 5, 3, 4),
            f"{UPSAMPLE}|nn.ReflectionPad2d p 1 1 w y padding=(3,4,5,2)",
        ),
        "parts of a concatenation": (
            (2, 5, 3, 4),
            f"{UPSAMPLE}|nn.ZeroPad2d p 1 1 w a padding=(1,2,3,0)|nn.ReflectionPad2d q 1 1 w b padding=(1,2,3,0)|"
            "torch.cat k 3 1 a b a y dim=1",
        ),
        "parts of a concatenation of pixels": (
            (2, 5, 3, 4),
            f"{SHIFT}|nn.ZeroPad2d p 1 1 w a padding=(1,2,0,0)|torch.cat k 3 1 a a x y dim=3",
        ),
    },
    "convolutions": {
        "a convolution with reflection": ((2, 5, 6, 7), CONV2D.format("x", "y", p="(2,1)", mode="reflect")),
        "a convolution with replication": ((2, 5, 1, 2), CONV2D.format("x", "y", p="(2,3)", mode="replicate")),
        "a convolution around the world": ((2, 5, 6, 7), CONV2D.format("x", "y", p="same", mode="circular")),
        "a convolution of a padded image": (
            (2, 5, 4, 3),
            f"{UPSAMPLE}|nn.ZeroPad2d p 1 1 w a padding=(0,1,0,1)|" + CONV2D.format("a", "y", p="(1,0)", mode="zeros"),
        ),
        "patches": ((1, 3, 48, 32), PATCHES.format(16, 16, 40)),
        "patches with a rest of two images": (
            (2, 3, 27, 39),
            f"{PATCHES.format(8, 9, 5)}|F.gelu g 1 1 y z $input=y",
        ),
        "patches of a computed image": (
            (2, 3, 16, 30),
            f"{SHIFT}|{PATCHES.format(4, 10, 17).replace(' x y ', ' w y ')}",
        ),
    },
    "sequences": {
        "a sequence": ((2, 5, 19), conv1d(7, 5, 4, stride=2, padding="(3)", dilation=2)),
        "a sequence of one": ((1, 5, 1), conv1d(33, 5, 3, padding="(1)")),
        "a sequence in groups": ((3, 6, 9), conv1d(4, 6, 3, padding="same", groups=2)),
        "a sequence channel by channel": ((3, 18, 9), conv1d(18, 18, 5, padding="(2)", stride=2, groups=18)),
        "a sequence with reflection": ((3, 6, 9), conv1d(4, 6, 3, padding="(2)", mode="reflect")),
        "a long sequence": ((1, 33, 5000), conv1d(40, 33, 3, padding="(1)")),
        "a long sequence channel by channel": ((1, 20, 9000), conv1d(20, 20, 9, padding="(4)", groups=20)),
        "few numbers and many weights": ((1, 512, 6), conv1d(300, 512, 3, padding="(1)")),
        "convolution, normalization, activation": (
            (2, 5, 19), f"{conv1d(6, 5, 3, padding='(1)')}|{NORM}|F.relu r 1 1 z v $input=z",
        ),
        "a residual of sequences": (
            (2, 6, 19),
            f"{conv1d(6, 6, 3, padding='(1)')}|pnnx.Expression e 2 1 y x z expr=add(@0,@1)|"
            f"{conv1d(6, 6, 1, names=('d', 'z', 'v'))}|pnnx.Expression f 2 1 v z u expr=tanh(add(@0,mul(@1,@1)))",
        ),
        "gates of a sequence": (
            (2, 6, 19),
            f"{conv1d(6, 6, 3, padding='(1)')}|nn.AdaptiveAvgPool1d p 1 1 y a output_size=(1)|"
            f"{conv1d(6, 6, 1, names=('d', 'a', 'b'))}|F.sigmoid s 1 1 b g $input=b|"
            "pnnx.Expression e 2 1 y g z expr=mul(@0,@1)",
        ),
        "a sequence turned": (
            (2, 5, 19),
            f"{conv1d(6, 5, 3)}|Tensor.permute t 1 1 y z dims=(0,2,1) $input=y|F.softmax s 1 1 z v dim=-1 $input=z",
        ),
        "sequences side by side": (
            (2, 5, 19),
            f"{conv1d(6, 5, 3)}|{conv1d(3, 5, 3, names=('d', 'x', 'z'))}|torch.cat k 3 1 y z y v dim=1|"
            "torch.cat l 2 1 v v u dim=2",
        ),
        "numpy between sequences": (
            (2, 5, 19),
            f"{conv1d(6, 5, 3)}|torch.cumprod s 1 1 y z dim=2 $input=y|{conv1d(3, 6, 3, names=('d', 'z', 'v'))}",
        ),
        "a transposed sequence": (
            (2, 5, 7),
            "nn.ConvTranspose1d c 1 1 x y bias=True dilation=(1) groups=1 output_padding=(1) padding=(2) stride=(3) "
            "@weight=(5,9,4)f32 @bias=(9)f32|F.relu r 1 1 y z $input=y",
        ),
        "a transposed sequence in groups": (
            (1, 4, 1),
            "nn.ConvTranspose1d c 1 1 x y bias=False dilation=(2) groups=2 output_padding=(0) padding=(0) stride=(1) "
            "@weight=(4,3,3)f32",
        ),
    },
    "pools": {
        "maxima of a sequence": (
            (2, 17, 10), POOL1D.format("Max", "False", 3, 2, 1) + "dilation=(2) return_indices=False",
        ),
        "maxima of a sequence to its end": (
            (2, 3, 8), POOL1D.format("Max", "True", 3, 2, 0) + "dilation=(1) return_indices=False",
        ),
        "means of a sequence": ((2, 17, 10), POOL1D.format("Avg", "False", 3, 2, 1) + "count_include_pad=True"),
        "means of a sequence to its end": (
            (2, 3, 8), POOL1D.format("Avg", "True", 3, 2, 1) + "count_include_pad=False",
        ),
        "cells of a sequence": ((2, 17, 10), "nn.AdaptiveAvgPool1d p 1 1 x y output_size=(4)"),
        "a mean of a sequence": ((2, 17, 10), "nn.AdaptiveAvgPool1d p 1 1 x y output_size=(1)"),
        "maxima of a sequence's cells": (
            (2, 17, 10), "nn.AdaptiveMaxPool1d p 1 1 x y output_size=(3) return_indices=False",
        ),
    },
    "shuffles": {
        "channels become pixels": ((2, 12, 3, 5), "nn.PixelShuffle s 1 1 x y upscale_factor=2"),
        "channels last become pixels": ((2, 18, 3, 5), f"{UPSAMPLE}|nn.PixelShuffle s 1 1 w y upscale_factor=3"),
        "pixels become channels": ((2, 5, 4, 6), "nn.PixelUnshuffle s 1 1 x y downscale_factor=2"),
        "pixels of channels last become channels": (
            (2, 5, 2, 3), f"{UPSAMPLE}|nn.PixelUnshuffle s 1 1 w y downscale_factor=2|torch.cat k 2 1 y y z dim=1",
        ),
        "channels are interleaved": ((2, 12, 3, 5), "nn.ChannelShuffle s 1 1 x y groups=3"),
        "channels last are interleaved to two": ((2, 38, 3, 5), f"{UPSAMPLE}|nn.ChannelShuffle s 1 1 w y groups=2"),
        "channels last are interleaved to four": ((1, 64, 3, 5), f"{UPSAMPLE}|nn.ChannelShuffle s 1 1 w y groups=4"),
        "channels last are interleaved to eight": ((1, 256, 2, 2), f"{UPSAMPLE}|nn.ChannelShuffle s 1 1 w y groups=8"),
        "channels of a sequence are interleaved": (
            (2, 12, 5), f"{conv1d(40, 12, 3)}|nn.ChannelShuffle s 1 1 y z groups=2",
        ),
        "halves and a gate": ((2, 12, 3, 5), "nn.GLU g 1 1 x y dim=1"),
        "halves of a sequence and a gate": ((2, 5, 9), f"{conv1d(12, 5, 3)}|F.glu g 1 1 y z dim=-2 $input=y"),
        "halves of channels last": (
            (2, 6, 2, 3),
            f"{UPSAMPLE}|torch.chunk h 1 2 w a b chunks=2 dim=1 $input=w|F.silu r 1 1 a c $input=a|"
            "pnnx.Expression e 2 1 c b y expr=mul(@0,@1)",
        ),
    },
    "normalizations": {
        "the least of all": ((2, 3, 5), "F.softmin s 1 1 x y dim=1 $input=x"),
        "logarithm of softmax": ((2, 3, 5), "F.log_softmax s 1 1 x y dim=-1 $input=x"),
        "logarithm of softmax over channels": ((2, 33, 5, 2), "nn.LogSoftmax s 1 1 x y dim=1"),
        "softmax over channels": ((2, 17, 5, 2), f"{UPSAMPLE}|nn.Softmax2d s 1 1 w y"),
        "root of mean squares": ((2, 3, 17), "nn.RMSNorm n 1 1 x y eps=1e-6 normalized_shape=(17) @weight=(17)f32"),
        "root of mean squares of planes": (
            (2, 3, 4, 5), "F.rms_norm n 1 1 x y normalized_shape=(4,5) eps=None $input=x",
        ),
        "each channel by itself": (
            (2, 17, 4, 5), "nn.InstanceNorm2d n 1 1 x y affine=True eps=1e-5 @weight=(17)f32 @bias=(17)f32",
        ),
        "each channel of a sequence by itself": ((2, 5, 9), "nn.InstanceNorm1d n 1 1 x y affine=False eps=1e-5"),
        "each channel by given statistics": (
            (2, 6, 9), "nn.InstanceNorm1d n 1 1 x y affine=False eps=1e-5 @running_mean=(6)f32 @running_var=(6)f32",
        ),
        "groups of channels of a sequence": (
            (2, 5, 9), f"{conv1d(12, 5, 3)}|nn.GroupNorm g 1 1 y z affine=False eps=1e-5 num_channels=12 num_groups=3",
        ),
        "vectors of length one": ((2, 17, 4, 5), "F.normalize n 1 1 x y dim=1 eps=1e-12 p=2.0 $input=x"),
        "rows of length one": ((3, 19), "F.normalize n 1 1 x y dim=(-1) eps=0.5 p=2.0 $input=x"),
        "neighbouring channels": ((2, 17, 4, 5), "nn.LocalResponseNorm n 1 1 x y alpha=0.5 beta=0.75 k=2.0 size=5"),
        "neighbouring channels, an even number": (
            (1, 3, 4, 5), f"{UPSAMPLE}|nn.LocalResponseNorm n 1 1 w y alpha=0.5 beta=0.6 k=1.0 size=4",
        ),
    },
    "reductions": {
        "largest of rows": ((2, 17, 4, 5), "torch.amax m 1 1 x y dim=(-1,2) keepdim=True $input=x"),
        "smallest of channels": ((2, 17, 4, 5), "torch.amin m 1 1 x y dim=(1) keepdim=False $input=x"),
        "largest of all": ((2, 17, 5), "torch.max m 1 1 x y $input=x"),
        "variance": ((2, 17, 4, 5), "torch.var m 1 1 x y dim=(2,3) unbiased=True keepdim=True $input=x"),
        "deviation": ((2, 17, 5), "torch.std m 1 1 x y dim=(0,2) correction=0 keepdim=False $input=x"),
        "deviation of one": ((2, 17, 1), "torch.std m 1 1 x y dim=(2) correction=1 keepdim=False $input=x"),
        "lengths": ((2, 17, 5), "torch.norm m 1 1 x y dim=(1) keepdim=False p=2 $input=x"),
        "length of all": ((2, 17, 5), "torch.norm m 1 1 x y keepdim=False p=fro $input=x"),
        "sums of absolute values": ((2, 17, 5), "torch.norm m 1 1 x y dim=(0,2) keepdim=True p=1 $input=x"),
    },
    "limits, stacks and rolls": {
        "limits": ((2, 17, 5), "torch.clamp c 1 1 x y max=1.5 min=-0.5 $input=x"),
        "limits that cross": ((2, 17, 5), "torch.clamp c 1 1 x y max=-1 min=1 $input=x"),
        "a lower limit": ((2, 17, 5), "torch.clamp c 1 1 x y max=None min=-0.5 $input=x"),
        "stacked": ((2, 6, 9), f"{conv1d(6, 6, 1)}|torch.stack s 3 1 x y x z dim=-1"),
        "stacked in front": ((2, 6), "torch.stack s 2 1 x x z dim=0"),
        "rolled": ((2, 5, 4, 3), "torch.roll r 1 1 x y dims=(1,-1) shifts=(-2,4) $input=x"),
        "rolled by nothing": ((2, 5, 4), "torch.roll r 1 1 x y dims=(1,1) shifts=(2,3) $input=x"),
    },
    "resizing": {
        "bicubic": (
            (2, 5, 4, 3), "nn.Upsample u 1 1 x y align_corners=False mode=bicubic size=(7,5) scale_factor=None",
        ),
        "nearest of a sequence": ((2, 5, 3), "nn.Upsample u 1 1 x y mode=nearest scale_factor=(2.3) size=None"),
        "exactly nearest": ((2, 5, 4, 3), "F.interpolate u 1 1 x y mode=nearest-exact size=(7,2) $input=x"),
        "linear": ((2, 5, 4), "F.interpolate u 1 1 x y align_corners=True mode=linear size=(9) $input=x"),
        "linear by a factor": ((2, 5, 4), "F.interpolate u 1 1 x y mode=linear scale_factor=(2.6) $input=x"),
        "areas": ((2, 5, 4, 3), "F.interpolate u 1 1 x y mode=area size=(3,7) $input=x"),
        "bilinear with corners": ((2, 5, 4, 3), "nn.UpsamplingBilinear2d u 1 1 x y scale_factor=None size=(7,5)"),
        "a size beside a factor": (
            (2, 5, 4, 3), "F.interpolate u 1 1 x y mode=bilinear size=(7,5) scale_factor=(2.0,2.0) $input=x",
        ),
    },
}  # fmt: skip


def attributes(lines: str) -> dict[str, Array]:
    """Return random weights of both signs for the attributes that lines declare; variances are positive."""
    random = np.random.default_rng(0)
    return {
        name: array if "running" in name else random.standard_normal(array.shape).astype(np.float32) / 2
        for name, array in weights_of(lines).items()
    }


def text_of(lines: str) -> str:
    operators = lines.split("|")
    words = operators[-1].split()
    last = words[4 + int(words[2])]
    return "\n".join(["pnnx.Input in 0 1 x", *operators, f"pnnx.Output out 1 0 {last}"])


def open_graph(folder: Path, lines: str, backend: str, threads: int = 1) -> RuntimeGraph:
    text = text_of(lines)
    return make_graph(folder, text, attributes(text), backend=backend, threads=threads)


def images(shape: tuple[int, ...]) -> list[Array]:
    """Return an image, one that does not lie row by row, and one with numbers that are none."""
    random = np.random.default_rng(1)
    plain = random.standard_normal(shape).astype(np.float32) * 2
    odd = plain.copy()
    odd.flat[random.permutation(odd.size)[: max(1, odd.size // 20)]] = np.nan
    odd.flat[random.permutation(odd.size)[: max(1, odd.size // 20)]] = np.inf
    odd.flat[random.permutation(odd.size)[: max(1, odd.size // 20)]] = -np.inf
    return [plain, np.asfortranarray(plain)[..., ::-1], odd]


@every_target
@pytest.mark.parametrize("family", CASES)
def test_kernels_give_what_numpy_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, target: Target
) -> None:
    monkeypatch.setattr(programs, "host_target", lambda: target)

    def check(name: str) -> None:
        shape, lines = CASES[family][name]
        folder = tmp_path / name
        folder.mkdir()
        plain = open_graph(folder, lines, "numpy")
        compiled = [open_graph(folder, lines, "native", threads) for threads in (1, 2)]
        # in Winograd's convolution what is not a number reaches all of its tile
        for x in images(shape)[: 2 if "nn.Conv2d" in lines else 3]:
            (wanted,) = plain.forward([x])
            largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.1)
            for graph in compiled:
                for _ in range(2):
                    (output,) = graph.forward([x])
                    assert (output.shape, output.dtype) == (wanted.shape, wanted.dtype)
                    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5 * largest)
        assert all(graph.verification.refused == () for graph in compiled)

    check_each(CASES[family], check)


@pytest.mark.parametrize("family", CASES)
def test_numpy_does_none_of_it(tmp_path: Path, family: str) -> None:
    def check(name: str) -> None:
        shape, lines = CASES[family][name]
        folder = tmp_path / name
        folder.mkdir()
        trace = open_graph(folder, lines, "native").run([images(shape)[0]], trace=TraceLevel.ON).trace
        assert trace is not None
        left = [layer.type for layer in trace.layers if layer.backend == "numpy"]
        assert set(left) <= {"pnnx.Input", "pnnx.Output"}

    check_each((name for name in CASES[family] if "numpy" not in name), check)
