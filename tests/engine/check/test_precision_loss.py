from pathlib import Path

import numpy as np
import pytest

from engine import Activation, Quantization, TensorScale, write_sidecar
from engine.check.calibrated_inputs import calibrated_inputs
from engine.check.decibels import decibels
from service.commands.dispatch import run_command
from tests.engine.quantization.test_layer import write_convolution


@pytest.fixture
def model(tmp_path: Path) -> Path:
    param, *_ = write_convolution(tmp_path)
    quantization = Quantization({"conv": Activation.STATIC}, {"x": TensorScale(0.03, 128)})
    write_sidecar(quantization, param, param.with_suffix(".bin"))
    return param


def test_the_first_layer_below_a_ratio_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", str(model), "--precision", "int8", "--ratio", "20"]) == 0
    assert "1 layers in lower precision than f32, none below 20 dB" in capsys.readouterr().out
    assert run_command(["check", str(model), "--precision", "int8", "--ratio", "90"]) == 1
    assert "first below 90 dB: nn.Conv2d conv, at operand 'y'" in capsys.readouterr().out


def test_made_up_inputs_lie_within_the_ranges_of_calibration(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What saturated would lose far more than 20 dB."""
    scale = TensorScale(1e-4, 55)
    quantization = Quantization({"conv": Activation.STATIC}, {"x": scale})
    write_sidecar(quantization, model, model.with_suffix(".bin"))
    assert run_command(["check", str(model), "--precision", "int8", "--ratio", "20"]) == 0
    assert "inputs  random, within the ranges of calibration" in capsys.readouterr().out
    x = np.zeros((2, 300), np.float32)
    made = calibrated_inputs({"x": x, "y": x}, {"x": scale})
    low, high = scale.limits
    assert low <= made["x"].min() < 0.9 * low < 0.9 * high < made["x"].max() <= high
    assert made["y"] is x


def test_in_float32_nothing_is_lost(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(["check", str(model), "--ratio", "90"]) == 0
    assert "0 layers in lower precision" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["nan", "inf", "much"])
def test_text_that_is_no_ratio_is_refused(model: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert run_command(["check", str(model), f"--ratio={text}"]) == 2
    assert "ratio" in capsys.readouterr().err


def test_ratios_are_those_of_powers() -> None:
    reference = np.array([3.0, 4.0], np.float32)
    assert decibels(reference * np.float32(1.1), reference) == pytest.approx(20, abs=1e-4)
    assert decibels(reference, reference) == np.inf


def test_what_is_not_finite_in_float32_does_not_count() -> None:
    reference = np.array([3.0, 4.0, -np.inf, np.nan], np.float32)
    assert decibels(np.array([3.0, 4.5, 0, 1], np.float32), reference) == pytest.approx(20)
    assert decibels(reference, reference) == np.inf
    assert decibels(np.full(4, np.nan, np.float32), reference) == -np.inf
