"""Random layers that many threads share, in more parts than they are worth: the bits of numpy, or of one thread."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import Activation, Quantization, RuntimeGraph, TensorScale
from engine.compiler.kernels import depthwise
from engine.compiler.selection import call, cost
from engine.compiler.selection.machine import Machine
from engine.dtypes import Array
from engine.kernels.bfloat16 import rounded_to_bfloat16
from tests.differential.comparison import compiling_for
from tests.differential.rounding import always_rounding
from tests.engine.compiler.emulation import BF16, INT8, WIDTHS
from tests.engine.models import write_model

_THREADS = (2, 3, 5, 8, 64)


class _Layer:
    """A convolution, most of them with groups, strides, dilation and padding of their own."""

    def __init__(self, choices: random.Random) -> None:
        pick = choices.choice
        groups = pick((1, 1, 2, 4))
        is_depthwise = pick((False, False, True))
        channels, filters = groups * pick((4, 8, 36)), groups * pick((1, 33, 130, 600))
        if is_depthwise:
            groups = filters = channels
        kernel = pick(((1, 1), (1, 1), (3, 3), (5, 2), (1, 7)))
        stride, dilation = pick(((1, 1), (1, 1), (2, 2), (1, 2), (3, 1))), pick(((1, 1), (1, 1), (2, 1)))
        padding = pick(((0, 0), (kernel[0] // 2, kernel[1] // 2), (kernel[0] - 1, 0)))
        size = [
            max(pick((1, 3, 7, 23)), (k - 1) * step + 1) for k, step in zip(kernel, dilation, strict=True)
        ]
        self.x = (pick((1, 1, 2, 3)), channels, size[0], size[1])
        self.weight = (filters, channels // groups, *kernel)
        parameters = {
            "in_channels": channels, "out_channels": filters, "groups": groups, "kernel_size": kernel,
            "stride": stride, "padding": padding, "dilation": dilation, "bias": False, "padding_mode": "zeros",
        }  # fmt: skip
        self._words = " ".join(f"{key}={value}".replace(" ", "") for key, value in parameters.items())

    def write(self, folder: Path, numbers: np.random.Generator) -> Path:
        """Write the model of the layer; returns the path of its file."""
        x, weight = (",".join(map(str, shape)) for shape in (self.x, self.weight))
        lines = (
            f"pnnx.Input in 0 1 x #x=({x})f32",
            f"nn.Conv2d layer 1 1 x y {self._words} @weight=({weight})f32",
            "pnnx.Output out 1 0 y",
        )
        values = rounded_to_bfloat16(numbers.standard_normal(self.weight).astype(np.float32))
        return write_model(folder, "\n".join(lines), {"layer.weight": values})


@pytest.fixture(autouse=True)
def _many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have small layers cut as large ones are."""
    monkeypatch.setattr(call, "_PART", 20.0)
    monkeypatch.setattr(call, "_SPARE_PART", 60.0)
    monkeypatch.setattr(depthwise, "_CHUNK", 256)
    monkeypatch.setattr(call, "machine_of", lambda target: Machine(target, cache=1 << 14))
    plain = cost.int8  # seldom faster than matrix registers, where there are some
    monkeypatch.setattr(cost, "int8", lambda *of: replace(plain(*of), multiply_adds=1e9))


@pytest.mark.parametrize("precision", ["f32", "bf16", "int8"])
@pytest.mark.parametrize("seed", range(12))
def test_random_layers(tmp_path: Path, seed: int, precision: str) -> None:
    """Of numbers that are bfloat16 already, so that rounded layers give what numpy's give in float32."""
    choices, numbers = random.Random(f"{precision} {seed}"), np.random.default_rng(seed)
    layer = _Layer(choices)
    path = layer.write(tmp_path, numbers)
    x = rounded_to_bfloat16(numbers.standard_normal(layer.x).astype(np.float32))
    special = {"f32": [], "bf16": BF16, "int8": INT8}[precision]
    quantization = Quantization(
        {"layer": Activation.STATIC}, {"x": TensorScale(0.05, choices.choice((0, 77)))}
    )

    def result(backend: str, threads: int) -> Array:
        graph = RuntimeGraph(
            path,
            backend=backend,
            threads=threads,
            precision="bf16" if (precision, backend) == ("bf16", "native") else "f32",
            quantization=quantization if precision == "int8" else None,
        )
        graph.build()
        (y,) = graph.forward([x])
        assert graph.verification.refused == ()
        return y

    with compiling_for(choices.choice(WIDTHS + special)), always_rounding(precision == "bf16"):
        alone = result("native", 1)
        for threads in choices.sample(_THREADS, 2):
            np.testing.assert_array_equal(result("native", threads), alone)
    if precision == "int8":
        np.testing.assert_array_equal(alone, result("numpy", 1))
    else:
        np.testing.assert_allclose(alone, result("numpy", 1), rtol=1e-4, atol=1e-4)
