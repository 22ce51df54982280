"""Programs of int8 models against the reference layers, which sum the same integers: the same bits."""

from pathlib import Path

import numpy as np
import pytest

from engine import Activation, Quantization, RuntimeGraph, TensorScale, TraceLevel
from engine.dtypes import Array
from tests.engine.models import write_model

_CONV = "padding_mode=zeros dilation=(1,1)"


class Writer:
    """Writes a model operator by operator, each convolution and linear layer in int8."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.weights: dict[str, Array] = {}
        self.layers: dict[str, Activation] = {}
        self.tensors: dict[str, TensorScale] = {}
        self._random = np.random.default_rng(3)

    def input(self, name: str, shape: tuple[int, ...]) -> None:
        text = ",".join(map(str, shape))
        self.lines.append(f"pnnx.Input in_{name} 0 1 {name} #{name}=({text})f32")

    def add(self, type: str, inputs: str, outputs: str, **parameters: object) -> None:
        given, gives = inputs.split(), outputs.split()
        words = " ".join(f"{key}={value}".replace(" ", "") for key, value in parameters.items())
        name = f"op{len(self.lines)}"
        self.lines.append(f"{type} {name} {len(given)} {len(gives)} {inputs} {outputs} {words}")

    def convolution(
        self,
        x: str,
        y: str,
        shape: tuple[int, int, int, int],
        stride: int = 1,
        padding: int = 0,
        groups: int = 1,
    ) -> None:
        filters, channels, *kernel = shape
        name = f"op{len(self.lines)}"
        self.weights[f"{name}.weight"] = self._random.standard_normal(shape).astype(np.float32)
        self.weights[f"{name}.bias"] = self._random.standard_normal(filters).astype(np.float32)
        attributes = f"@weight=({filters},{channels},{kernel[0]},{kernel[1]})f32 @bias=({filters})f32"
        self.lines.append(
            f"nn.Conv2d {name} 1 1 {x} {y} in_channels={channels * groups} out_channels={filters} bias=True "
            f"kernel_size=({kernel[0]},{kernel[1]}) stride=({stride},{stride}) padding=({padding},{padding}) "
            f"groups={groups} {_CONV} {attributes}"
        )
        self.layers[name] = Activation.STATIC

    def linear(
        self, x: str, y: str, inputs: int, outputs: int, activation: Activation, *, has_bias: bool = False
    ) -> None:
        name = f"op{len(self.lines)}"
        self.weights[f"{name}.weight"] = self._random.standard_normal((outputs, inputs)).astype(np.float32)
        bias = ""
        if has_bias:
            self.weights[f"{name}.bias"] = self._random.standard_normal(outputs).astype(np.float32)
            bias = f" @bias=({outputs})f32"
        self.lines.append(
            f"nn.Linear {name} 1 1 {x} {y} in_features={inputs} out_features={outputs} bias={has_bias} "
            f"@weight=({outputs},{inputs})f32{bias}"
        )
        self.layers[name] = activation

    def graphs(self, folder: Path, threads: int = 1) -> tuple[RuntimeGraph, RuntimeGraph]:
        param = write_model(folder, "\n".join(self.lines), self.weights)
        quantization = Quantization(self.layers, self.tensors)
        graphs = [
            RuntimeGraph(param, backend=backend, threads=threads, quantization=quantization)
            for backend in ("native", "numpy")
        ]
        for graph in graphs:
            graph.build()
        return graphs[0], graphs[1]


def check_same(writer: Writer, folder: Path, x: Array) -> RuntimeGraph:
    """Compare a program with the reference layers, at several numbers of threads; returns the graph of the program."""
    results = []
    for threads in (1, 2, 3):
        native, plain = writer.graphs(folder, threads)
        results.append(native.forward([x]))
        assert native.verification.refused == ()
        assert native.verification.checked == 1
        wanted = plain.forward([x])
        for ours, other in zip(results[-1], wanted, strict=True):
            np.testing.assert_array_equal(ours, other)
    trace = native.run([x], trace=TraceLevel.ON).trace
    assert trace is not None
    layers = [layer for layer in trace.layers if layer.type not in ("pnnx.Input", "pnnx.Output")]
    assert {layer.backend for layer in layers} == {"native"}
    return native


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("batch", [1, 3])
def test_residual_blocks_with_pooling_and_a_head(tmp_path: Path, batch: int) -> None:
    writer = Writer()
    writer.input("x", (batch, 3, 17, 13))
    writer.convolution("x", "a", (20, 3, 3, 3), 2, 1)
    writer.add("nn.ReLU", "a", "b")
    writer.add(
        "nn.MaxPool2d",
        "b",
        "c",
        kernel_size="(3,3)",
        stride="(1,1)",
        padding="(1,1)",
        dilation="(1,1)",
        ceil_mode=False,
        return_indices=False,
    )
    writer.convolution("c", "d", (20, 20, 3, 3), 1, 1)
    writer.add("nn.ReLU", "d", "e")
    writer.convolution("e", "f", (20, 20, 1, 1))
    writer.add("pnnx.Expression", "f c", "g", expr="add(@0,@1)")
    writer.add("nn.ReLU", "g", "h")
    writer.convolution("h", "i", (37, 20, 3, 3), 2, 1)
    writer.add("nn.AdaptiveAvgPool2d", "i", "j", output_size="(1,1)")
    writer.add("torch.flatten", "j", "k", start_dim=1, end_dim=-1)
    writer.linear("k", "l", 37, 10, Activation.STATIC)
    writer.add("pnnx.Output", "l", "")
    writer.lines[-1] = "pnnx.Output out 1 0 l"
    unsigned = TensorScale(0.05, 0)
    writer.tensors = {
        "x": TensorScale(0.03, 127), "b": unsigned, "c": unsigned, "e": TensorScale(0.2, 0),
        "h": TensorScale(0.7, 0), "j": TensorScale(0.3, 120), "k": TensorScale(0.3, 120),
    }  # fmt: skip
    graph = check_same(writer, tmp_path, numbers(batch, 3, 17, 13))
    captured = graph.run([numbers(batch, 3, 17, 13)], capture=["c", "h"])
    assert captured.captured_by == {"c": "native", "h": "native"}
    c = captured.captured["c"]
    assert isinstance(c, np.ndarray)
    np.testing.assert_array_equal(c, unsigned.rounded(c))


@pytest.mark.parametrize("is_even", [True, False])
def test_concatenation_upsampling_and_parts(tmp_path: Path, is_even: bool) -> None:
    """Integers flow where channels come in fours, and become float32 in between where they do not."""
    channels = 8 if is_even else 6
    writer = Writer()
    writer.input("x", (2, 5, 6, 7))
    writer.convolution("x", "a", (channels, 5, 1, 1))
    writer.convolution("a", "b", (channels, channels, 3, 3), 1, 1)
    writer.add("torch.cat", "a b", "c", dim=1)
    writer.add("nn.Upsample", "c", "d", scale_factor="(2.0,2.0)", mode="nearest", size="None")
    writer.convolution("d", "e", (16, 2 * channels, 1, 1))
    writer.add("torch.chunk", "d", "f g", chunks=2, dim=1)
    writer.convolution("f", "h", (16, channels, 1, 1))
    writer.add("pnnx.Expression", "e h", "i", expr="add(@0,@1)")
    writer.add("pnnx.Output", "i", "")
    writer.lines[-1:] = ["pnnx.Output out 1 0 i", "pnnx.Output out2 1 0 g"]
    scale = TensorScale(0.06, 130)
    writer.tensors = {"x": TensorScale(0.03, 100)} | dict.fromkeys("abcdfg", scale)
    check_same(writer, tmp_path, numbers(2, 5, 6, 7))


@pytest.mark.parametrize("first", [2, 4, 6])
def test_a_slice_may_begin_within_a_word_of_channels(tmp_path: Path, first: int) -> None:
    """A word holds four channels: a slice that begins at the third has none of the words of the whole."""
    writer = Writer()
    writer.input("x", (1, 5, 6, 7))
    writer.convolution("x", "a", (12, 5, 1, 1))
    writer.add("Tensor.slice", "a", "c", dim=1, start=first, end=12, step=1)
    writer.convolution("c", "d", (16, 12 - first, 1, 1))
    writer.add("pnnx.Output", "d", "")
    writer.lines[-1] = "pnnx.Output out 1 0 d"
    writer.tensors = {"x": TensorScale(0.03, 100)} | dict.fromkeys("ac", TensorScale(0.06, 130))
    check_same(writer, tmp_path, numbers(1, 5, 6, 7))


@pytest.mark.parametrize("channels", [8, 20, 6])
@pytest.mark.parametrize("batch", [1, 2])
def test_integers_of_several_scales_meet(tmp_path: Path, channels: int, batch: int) -> None:
    """What concatenation, pooling, upsampling and splitting give has scales of its own; some results have none."""
    writer = Writer()
    writer.input("x", (batch, 5, 6, 7))
    writer.convolution("x", "a", (channels, 5, 1, 1))
    writer.convolution("a", "b", (channels, channels, 3, 3), 1, 1)
    pool = {"kernel_size": "(3,3)", "stride": "(1,1)", "padding": "(1,1)", "dilation": "(1,1)"}
    writer.add("nn.MaxPool2d", "b", "p", **pool, ceil_mode=False, return_indices=False)
    writer.add("torch.cat", "a b p", "c", dim=1)
    writer.add("torch.cat", "p a", "m", dim=1)
    writer.add("nn.Upsample", "c", "d", scale_factor="(2.0,2.0)", mode="nearest", size="None")
    writer.convolution("d", "e", (16, 3 * channels, 1, 1))
    writer.convolution("m", "n", (16, 2 * channels, 1, 1))
    writer.add("torch.chunk", "c", "f g h", chunks=3, dim=1)
    writer.convolution("f", "i", (16, channels, 1, 1))
    writer.add("torch.split", "m", "q r", split_size_or_sections=channels, dim=1)
    writer.convolution("r", "s", (16, channels, 1, 1))
    writer.add("pnnx.Expression", "i n s", "j", expr="add(add(@0,@1),@2)")
    names = "e g h j q"
    writer.lines += [f"pnnx.Output out{name} 1 0 {name}" for name in names.split()]
    rough, fine = TensorScale(0.11, 90), TensorScale(0.03, 130)
    other = TensorScale(0.05, 128, rounds_sum=True, lowest=-128)
    writer.tensors = {"x": TensorScale(0.03, 100), "a": fine, "b": rough, "p": fine, "c": rough} | {
        "d": TensorScale(0.2, 77), "m": other, "f": fine, "g": rough, "r": TensorScale(0.013, 0)
    }  # fmt: skip
    check_same(writer, tmp_path, numbers(batch, 5, 6, 7))


@pytest.mark.parametrize("count", [1, 2])
def test_parts_of_four_channels_are_put_together_again(tmp_path: Path, count: int) -> None:
    """Each part is one element to a pixel, so that its elements lie in any order of its axes: of all, in one only."""
    writer = Writer()
    writer.input("x", (1, 8, 3, 7))
    writer.convolution("x", "a", (8, 8, 1, 1))
    writer.add("torch.chunk", "a", "b c", chunks=2, dim=1)
    for place in range(count):
        writer.add("torch.cat", "b c", f"d{place}", dim=1)
        writer.convolution(f"d{place}", f"e{place}", (8, 8, 1, 1))
        writer.lines += [f"pnnx.Output out{name}{place} 1 0 {name}{place}" for name in "de"]
    names = ["x", "a", "b", "c", *(f"d{place}" for place in range(count))]
    writer.tensors = dict.fromkeys(names, TensorScale(0.04, 100))
    check_same(writer, tmp_path, numbers(1, 8, 3, 7))


def test_depthwise_and_grouped_convolutions(tmp_path: Path) -> None:
    writer = Writer()
    writer.input("x", (1, 16, 9, 9))
    writer.convolution("x", "a", (16, 1, 3, 3), 1, 1, 16)
    writer.add("nn.ReLU6", "a", "b")
    writer.convolution("b", "c", (24, 4, 3, 3), 2, 1, 4)
    writer.convolution("c", "d", (24, 1, 5, 5), 1, 2, 24)
    writer.add("pnnx.Output", "d", "")
    writer.lines[-1] = "pnnx.Output out 1 0 d"
    writer.tensors = {"x": TensorScale(0.03, 99), "b": TensorScale(6 / 255, 0), "c": TensorScale(0.4, 128)}
    check_same(writer, tmp_path, numbers(1, 16, 9, 9))


def test_a_tensor_of_integers_may_be_an_output_too(tmp_path: Path) -> None:
    writer = Writer()
    writer.input("x", (1, 4, 5, 5))
    writer.convolution("x", "a", (8, 4, 1, 1))
    writer.convolution("a", "b", (8, 8, 1, 1))
    writer.add("pnnx.Output", "b", "")
    writer.lines[-1:] = ["pnnx.Output out 1 0 a", "pnnx.Output out2 1 0 b"]
    writer.tensors = {"x": TensorScale(0.03, 99), "a": TensorScale(0.05, 128)}
    check_same(writer, tmp_path, numbers(1, 4, 5, 5))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
def test_extreme_inputs(tmp_path: Path, value: float) -> None:
    writer = Writer()
    writer.input("x", (1, 4, 5, 5))
    writer.convolution("x", "a", (8, 4, 3, 3), 1, 1)
    writer.add("pnnx.Output", "a", "")
    writer.lines[-1] = "pnnx.Output out 1 0 a"
    writer.tensors = {"x": TensorScale(0.03, 99)}
    native, plain = writer.graphs(tmp_path)
    x = numbers(1, 4, 5, 5)
    x[0, :, 2] = value
    np.testing.assert_array_equal(native.forward([x])[0], plain.forward([x])[0])
    assert np.isfinite(native.forward([x])[0]).all()


@pytest.mark.parametrize("has_bias", [True, False])
def test_linear_layers_of_tokens(tmp_path: Path, has_bias: bool) -> None:
    """Rows have scales of their own; layers with one input share its integers; activations and additions are fused."""
    writer = Writer()
    writer.input("x", (2, 7, 21))
    writer.linear("x", "a", 21, 40, Activation.DYNAMIC, has_bias=has_bias)
    writer.linear("x", "b", 21, 40, Activation.DYNAMIC, has_bias=has_bias)
    writer.add("nn.ReLU", "a", "c")
    writer.add("pnnx.Expression", "b c", "d", expr="add(@0,@1)")
    writer.linear("d", "e", 40, 19, Activation.DYNAMIC, has_bias=has_bias)
    writer.add("pnnx.Output", "e", "")
    writer.lines[-1] = "pnnx.Output out 1 0 e"
    x = numbers(2, 7, 21) * np.geomspace(1e-3, 1e3, 7, dtype=np.float32)[:, None]
    x[0, 0] = 0
    check_same(writer, tmp_path, x)
    x[0, 1, :3] = np.nan, np.inf, -np.inf
    native, plain = writer.graphs(tmp_path)
    np.testing.assert_array_equal(native.forward([x])[0], plain.forward([x])[0])
    finite = np.isfinite(native.forward([x])[0])
    assert not finite[0, 1].any()  # as in float32
    assert finite.all(axis=-1).sum() == 13
