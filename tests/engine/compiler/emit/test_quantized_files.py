"""Weights as integers that are kept: the same ones, mapped, and never those of other weights."""

import mmap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import Activation, BuildError, Quantization, RuntimeGraph, TensorScale
from engine.compiler.emit import quantized_files as module
from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.packed_files import PackedFiles
from engine.compiler.emit.quantized_files import QuantizedFiles
from engine.dtypes import Array
from engine.quantization.weights import QuantizedWeights, quantize_weights
from tests.engine.models import write_model

WEIGHT: Array = np.random.default_rng(0).standard_normal((64, 32, 3, 3)).astype(np.float32)
MODEL = """
pnnx.Input in 0 1 x #x=(1,32,6,7)f32
nn.Conv2d conv 1 1 x y in_channels=32 out_channels=64 kernel_size=(3,3) stride=(1,1) padding=(1,1) dilation=(1,1) \
groups=1 bias=False padding_mode=zeros @weight=(64,32,3,3)f32
pnnx.Output out 1 0 y
"""


@pytest.fixture
def files(tmp_path: Path) -> QuantizedFiles:
    return QuantizedFiles(PackedFiles(CodeStore(tmp_path / "kept")))


def check_same(found: QuantizedWeights, wanted: QuantizedWeights) -> None:
    np.testing.assert_array_equal(found.integers, wanted.integers, strict=True)
    np.testing.assert_array_equal(found.scales, wanted.scales, strict=True)


def is_mapped(array: Array) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


def test_integers_are_those_of_the_weights_and_mapped(
    files: QuantizedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = quantize_weights(WEIGHT)
    first = files.quantize(WEIGHT)
    monkeypatch.delattr(module, "quantize_weights")  # the second time it is not asked
    for found in (first, files.quantize(WEIGHT.copy())):
        check_same(found, wanted)
        assert is_mapped(found.integers)


@pytest.mark.parametrize("other", [-WEIGHT, WEIGHT.reshape(64, 32, 9), np.nextafter(WEIGHT, np.float32(9))])
def test_other_weights_have_integers_of_their_own(files: QuantizedFiles, other: Array) -> None:
    files.quantize(WEIGHT)
    check_same(files.quantize(other), quantize_weights(other))


def test_what_is_damaged_is_made_again(files: QuantizedFiles, tmp_path: Path) -> None:
    files.quantize(WEIGHT)
    (kept,) = (tmp_path / "kept").iterdir()
    content = bytearray(kept.read_bytes())
    content[5000] ^= 1
    kept.write_bytes(content)
    check_same(files.quantize(WEIGHT), quantize_weights(WEIGHT))


def test_weights_that_are_not_finite_are_refused_each_time(files: QuantizedFiles, tmp_path: Path) -> None:
    weight = WEIGHT.copy()
    weight[3, 2, 1, 0] = np.inf
    for _ in range(2):
        with pytest.raises(BuildError, match="not all finite"):
            files.quantize(weight)
    assert not (tmp_path / "kept").exists()


def test_few_weights_and_stores_that_are_off_keep_nothing(files: QuantizedFiles, tmp_path: Path) -> None:
    check_same(files.quantize(WEIGHT[:2]), quantize_weights(WEIGHT[:2]))
    assert not (tmp_path / "kept").exists()
    off = QuantizedFiles(PackedFiles(CodeStore(None)))
    check_same(off.quantize(WEIGHT), quantize_weights(WEIGHT))


def test_a_graph_computes_the_same_of_mapped_integers(
    files: QuantizedFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "quantized_files", lambda: files)
    param = write_model(tmp_path, MODEL, {"conv.weight": WEIGHT})
    x = np.random.default_rng(1).standard_normal((1, 32, 6, 7)).astype(np.float32)
    quantization = Quantization({"conv": Activation.STATIC}, {"x": TensorScale(0.02, 100)})
    results = []
    for backend in ("numpy", "native", "native"):
        graph = RuntimeGraph(param, backend=backend, quantization=quantization, verify="always")
        graph.build()
        results.append(graph.forward([x])[0])
    assert list((tmp_path / "kept").iterdir())
    np.testing.assert_array_equal(results[2], results[1])
    np.testing.assert_array_equal(results[1], results[0])
