import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import (
    Activation,
    Calibration,
    LayerFigures,
    OutputFigures,
    Precision,
    Quantization,
    QuantizationError,
    QuantizationFigures,
    RunFigures,
    RuntimeGraph,
    TensorScale,
    TraceLevel,
    read_sidecar,
    sidecar_path,
    write_sidecar,
)
from engine.quantization import document, sidecar
from tests.engine.quantization.test_layer import write_convolution

KNOWN = Quantization(
    {"conv": Activation.STATIC, "fc": Activation.DYNAMIC},
    {"0": TensorScale(0.5, 3), "1": TensorScale(2.0, 0)},
    Calibration("photographs", 12, "mse"),
)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    param, binary = tmp_path / "net.pnnx.param", tmp_path / "net.pnnx.bin"
    param.write_text("model")
    binary.write_bytes(b"weights")
    return param, binary


def test_what_is_written_is_read(files: tuple[Path, Path]) -> None:
    path = write_sidecar(KNOWN, *files)
    assert path == sidecar_path(files[0]) == files[0].with_name("net.quantization.json")
    assert read_sidecar(*files) == KNOWN
    assert [path.name for path in sorted(files[0].parent.iterdir())] == [
        "net.pnnx.bin",
        "net.pnnx.param",
        "net.quantization.json",
    ]


def test_one_that_is_missing_names_the_command(files: tuple[Path, Path]) -> None:
    with pytest.raises(
        QuantizationError, match="is missing.*`kuiper quantize .*net.pnnx.param --data EXAMPLES`"
    ):
        read_sidecar(*files)


@pytest.mark.parametrize("place", [0, 1])
def test_one_of_other_files_is_refused(files: tuple[Path, Path], place: int) -> None:
    write_sidecar(KNOWN, *files)
    files[place].write_text("another")
    kind = ("param", "bin")[place]
    with pytest.raises(QuantizationError, match=f"was made for another .{kind} file; .* --data EXAMPLES`"):
        read_sidecar(*files)


def broken(document: dict[str, Any], keys: list[str], value: Any) -> str:
    place = document
    for key in keys[:-1]:
        place = place[key]
    if value is None:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return json.dumps(document)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (["format"], 2, "format: got 2; expected 1"),
        (["format"], True, "format: got True"),
        (["model"], None, "model: is missing"),
        (["model"], [], "model: is list; expected an object"),
        (["more"], 1, "more: is unknown; expected one of format"),
        (["layers", "conv"], "both", "layers.conv: got 'both'; expected one of static, dynamic"),
        (["layers", "conv"], 1, "layers.conv: is int; expected a text"),
        (["tensors", "0", "scale"], 0, "tensors.0.scale: got 0; expected a number from 1e-30"),
        (["tensors", "0", "scale"], -1.5, "tensors.0.scale: got -1.5"),
        (["tensors", "0", "scale"], 1e300, "tensors.0.scale"),
        (["tensors", "0", "scale"], "1", "tensors.0.scale: got '1'; expected a number"),
        (["tensors", "0", "scale"], True, "tensors.0.scale"),
        (
            ["tensors", "0", "zero_point"],
            256,
            "tensors.0.zero_point: got 256; expected a whole number from 0 to 255",
        ),
        (["tensors", "0", "zero_point"], 1.0, "tensors.0.zero_point"),
        (["tensors", "0", "zero"], 1, "tensors.0.zero: is unknown"),
        (["tensors", "0"], 3, "tensors.0: is int"),
        (["calibration", "examples"], 0, "calibration.examples"),
        (["calibration", "data"], "x" * 2000, "data: has 2,000 characters; expected at most 1,024"),
        (["tensors", "\ud800\n"], 1, r"tensors.\ud800\n: is int"),
        (["tensors", "x" * 2000], 1, "tensors." + "x" * 1016 + ": is int"),
    ],
)
def test_malformed_values_are_named(
    files: tuple[Path, Path], keys: list[str], value: Any, message: str
) -> None:
    path = write_sidecar(KNOWN, *files)
    path.write_text(broken(json.loads(path.read_text()), keys, value))
    with pytest.raises(QuantizationError) as raised:
        read_sidecar(*files)
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff", b"[]", b"null", b"{", b"[" * 100_000, b'{"format": NaN}', b'{"format": 1, "format": 1}'],
)
def test_what_is_no_such_document_is_refused(files: tuple[Path, Path], content: bytes) -> None:
    sidecar_path(files[0]).write_bytes(content)
    with pytest.raises(QuantizationError):
        read_sidecar(*files)


def test_huge_files_are_not_read(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    write_sidecar(KNOWN, *files)
    monkeypatch.setattr(sidecar, "MAX_BYTES", 100)
    with pytest.raises(QuantizationError, match="has more than 100 bytes"):
        read_sidecar(*files)
    monkeypatch.undo()
    monkeypatch.setattr(document, "MAX_ENTRIES", 1)
    with pytest.raises(QuantizationError, match="has 2 entries; expected at most 1"):
        read_sidecar(*files)


@pytest.mark.parametrize(
    ("make", "problem"),
    [(os.mkfifo, "is not a regular file"), (os.mkdir, "is a folder")],
    ids=["pipe", "folder"],
)
def test_what_is_no_file_is_refused_at_once(
    files: tuple[Path, Path], make: Callable[[Path], None], problem: str
) -> None:
    make(sidecar_path(files[0]))
    with pytest.raises(QuantizationError, match=f"net.quantization.json: {problem}"):
        read_sidecar(*files)


def test_devices_are_not_read(files: tuple[Path, Path]) -> None:
    sidecar_path(files[0]).symlink_to("/dev/zero")
    with pytest.raises(QuantizationError, match="is not a regular file"):
        read_sidecar(*files)


def test_a_graph_in_int8_finds_its_file(tmp_path: Path) -> None:
    param, *_ = write_convolution(tmp_path)
    graph = RuntimeGraph(param, precision="int8")
    with pytest.raises(QuantizationError, match="is missing.*`kuiper quantize"):
        graph.build()
    write_sidecar(
        Quantization({"conv": Activation.STATIC}, {"x": TensorScale(0.02, 99)}),
        param,
        param.with_suffix(".bin"),
    )
    for backend in ("native", "numpy"):
        graph = RuntimeGraph(param, precision="int8", backend=backend)
        graph.build()
        assert graph.precision is Precision.INT8
        assert graph.precisions == {"in": Precision.F32, "conv": Precision.INT8, "out": Precision.F32}
        trace = graph.run(np.zeros((1, 3, 6, 7), np.float32), trace=TraceLevel.ON).trace
        assert trace is not None
        assert [layer.precision for layer in trace.layers] == ["f32", "int8", "f32"]


def test_figures_are_read_as_they_were_written(files: tuple[Path, Path]) -> None:
    outputs = OutputFigures(0.5, None, -3.5)
    layer = LayerFigures("nn.Conv2d", "static", True, None, 0.25, 3.0, 2.0, 1.0, OutputFigures(1, 0.0, None))
    for runs in (None, RunFigures("a processor, 2 threads", 3.0, 2.5, 2.0)):
        figures = QuantizationFigures(outputs, {"conv": layer}, runs)
        write_sidecar(replace(KNOWN, figures=figures), *files)
        found = read_sidecar(*files)
        assert found.figures == figures
        assert found == KNOWN


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (
            ("outputs", "agreement"),
            1.5,
            r"figures\.outputs\.agreement: got 1\.5; expected a number from 0 to 1",
        ),
        (("outputs", "ratio"), "much", r"figures\.outputs\.ratio: got 'much'; expected a number"),
        (
            ("layers", "conv", "quantized"),
            1,
            r"figures\.layers\.conv\.quantized: got 1; expected true or false",
        ),
        (("layers", "conv", "cosine"), True, r"figures\.layers\.conv\.cosine: got True; expected a number"),
        (("layers", "conv", "alone"), None, r"figures\.layers\.conv\.alone: is NoneType; expected an object"),
        (("runs", "int8_us"), -1, r"figures\.runs\.int8_us: got -1; expected a number from 0"),
        (("runs", "processor"), 7, r"figures\.runs\.processor: is int; expected a text"),
        (("layers", "conv", "fast"), 1, r"figures\.layers\.conv\.fast: is unknown"),
    ],
)
def test_figures_that_are_none_are_refused(
    files: tuple[Path, Path], keys: tuple[str, ...], value: object, message: str
) -> None:
    layer = LayerFigures("nn.Conv2d", "static", True, 1.0, 0.25, 3.0, 2.0, 1.0, OutputFigures(1, 0.0, None))
    runs = RunFigures("a processor, 1 thread", 3.0, 2.0, 1.0)
    figures = QuantizationFigures(OutputFigures(1.0, 0.0, 1.0), {"conv": layer}, runs)
    path = write_sidecar(replace(KNOWN, figures=figures), *files)
    document = json.loads(path.read_text())
    place = document["figures"]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    path.write_text(json.dumps(document))
    with pytest.raises(QuantizationError, match=message):
        read_sidecar(*files)
