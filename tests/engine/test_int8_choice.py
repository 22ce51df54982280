"""`auto` computes in int8 where the model was quantized with little loss, and the processor is made for it."""

from pathlib import Path

import pytest

from engine import (
    Activation,
    BuildError,
    Calibration,
    OutputFigures,
    Precision,
    Quantization,
    QuantizationFigures,
    RunFigures,
    RuntimeGraph,
    TensorScale,
    write_sidecar,
)
from engine.backend import Backend, describe_processor
from engine.compiler.emit.target import int8_targets, supported_targets, target_named
from tests.engine.quantization.test_layer import write_convolution


@pytest.fixture
def param(tmp_path: Path) -> Path:
    return write_convolution(tmp_path)[0]


def write(param: Path, error: float | None, figures: QuantizationFigures | None = None) -> None:
    calibration = Calibration("photographs", 12, "mse", error)
    quantization = Quantization(
        {"conv": Activation.STATIC}, {"x": TensorScale(0.02, 99)}, calibration, figures
    )
    write_sidecar(quantization, param, param.with_suffix(".bin"))


def precision(param: Path) -> Precision:
    graph = RuntimeGraph(param, precision="auto", tolerance=0.05, backend="native")
    graph.build()
    assert graph.precision is Precision.AUTO
    return graph.precisions["conv"]


@pytest.mark.parametrize(
    ("error", "is_fast", "wanted"),
    [
        (0.04, True, Precision.INT8),
        (0.06, True, Precision.F32),
        (None, True, Precision.F32),
        (0.04, False, Precision.F32),
    ],
)
def test_auto_takes_int8_where_the_measured_error_is_tolerated(
    param: Path, monkeypatch: pytest.MonkeyPatch, error: float | None, is_fast: bool, wanted: Precision
) -> None:
    monkeypatch.setattr("engine.int8_choice.multiplies_bytes", lambda _: is_fast)
    write(param, error)
    assert precision(param) is wanted


@pytest.mark.parametrize(
    ("runs", "wanted"),
    [
        (RunFigures("this one", 9.0, 5.0, 4.0), Precision.INT8),
        (RunFigures("this one", 9.0, 3.0, 4.0), Precision.F32),  # too small a layer for bfloat16
        (RunFigures("this one", 3.0, 9.0, 4.0), Precision.F32),
        (RunFigures("another", 9.0, 3.0, 4.0), Precision.INT8),
    ],
)
def test_auto_leaves_int8_out_where_another_precision_was_faster_on_such_a_processor(
    param: Path, monkeypatch: pytest.MonkeyPatch, runs: RunFigures, wanted: Precision
) -> None:
    monkeypatch.setattr("engine.int8_choice.multiplies_bytes", lambda _: True)
    monkeypatch.setattr("engine.int8_choice.describe_processor", lambda *_: "this one")
    write(param, 0.01, QuantizationFigures(OutputFigures(1.0, 0.01, 40.0), {}, runs))
    assert precision(param) is wanted


def test_processors_and_threads_are_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, narrow = supported_targets()[0], supported_targets()[-1]
    reported = set()
    for target in (wide, narrow):
        monkeypatch.setattr("engine.compiler.emit.target.host_target", lambda target=target: target)
        reported |= {describe_processor(Backend.NATIVE, threads) for threads in (1, 2)}
    assert len(reported) == 2 * len({wide.name, narrow.name})
    assert describe_processor(Backend.NUMPY, 1) == "reference implementation, 1 thread"


def test_a_model_that_was_not_quantized_is_served_all_the_same(param: Path) -> None:
    assert precision(param) is Precision.F32


def test_a_file_for_another_model_is_left_out_and_told_of(param: Path) -> None:
    write(param, 0.01)
    param.write_text(param.read_text() + "\n")
    graph = RuntimeGraph(param, precision="auto")
    graph.build()
    assert graph.precisions["conv"] is Precision.F32
    (warning,) = graph.warnings
    assert "int8 out" in warning
    assert "was made for another .param" in warning


def test_a_file_that_does_not_fit_the_graph_is_left_out_whole(
    param: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one that another version of the engine wrote may be; where int8 was asked for, it is an error."""
    monkeypatch.setattr("engine.int8_choice.multiplies_bytes", lambda _: True)
    calibration = Calibration("photographs", 12, "mse", 0.01)
    quantization = Quantization({"conv": Activation.STATIC}, {}, calibration)
    write_sidecar(quantization, param, param.with_suffix(".bin"))
    graph = RuntimeGraph(param, precision="auto", tolerance=0.05, backend="native")
    graph.build()
    assert graph.precisions["conv"] is Precision.F32
    (warning,) = graph.warnings
    assert "int8 out" in warning
    assert "'x' has no scale" in warning
    with pytest.raises(BuildError, match="has no scale"):
        RuntimeGraph(param, precision="int8").build()


def test_numpy_layers_stay_in_float32(param: Path) -> None:
    write(param, 0.01)
    graph = RuntimeGraph(param, precision="auto", backend="numpy")
    graph.build()
    assert graph.precisions["conv"] is Precision.F32


def test_targets_with_products_of_bytes_are_known() -> None:
    assert all(target.multiplies_bytes for target in int8_targets())
    assert not any(target.multiplies_bytes for target in supported_targets())
    assert not target_named("bf16").multiplies_bytes
