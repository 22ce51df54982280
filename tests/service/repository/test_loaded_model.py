from pathlib import Path

import numpy as np
import pytest

from engine import LayerError, UnsupportedOperatorError
from service.config.model_config import ModelConfigError
from service.repository.version_loader import LoadOptions, load_version
from tests.engine.models import write_model
from tests.service.models import DIGIT, DIGIT_CONFIG, MISMATCH, UNKNOWN_LAYER, add_model


def test_model_is_built_and_measured(tmp_path: Path) -> None:
    folder = tmp_path / "linear"
    folder.mkdir()
    lines = """
    pnnx.Input  in     0 1 0 #0=(1,3)f32
    nn.Linear   linear 1 1 0 1 bias=True in_features=3 out_features=2 @bias=(2)f32 @weight=(2,3)f32
    pnnx.Output out    1 0 1
    """
    weights = {"linear.bias": np.ones(2, np.float32), "linear.weight": np.ones((2, 3), np.float32)}
    write_model(folder, lines, weights)
    model = load_version("linear", folder, LoadOptions())
    assert (model.name, model.parameter_count, model.byte_count) == ("linear", 8, 32)
    assert model.graph.forward([np.ones((1, 3), np.float32)])[0].tolist() == [[4, 4]]


def test_configuration_is_read_and_checked(tmp_path: Path) -> None:
    model = load_version("digit", add_model(tmp_path, "digit", DIGIT, DIGIT_CONFIG), LoadOptions())
    assert model.config.task == "classification"
    config = DIGIT_CONFIG.replace('"p9"', '"p9", "p10"')
    with pytest.raises(ModelConfigError, match="labels"):
        load_version("wrong", add_model(tmp_path, "wrong", DIGIT, config), LoadOptions())


def test_unsupported_operators_are_found_at_load(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"nn.RELU relu \(nearest known: .*nn.ReLU"):
        load_version("unknown", add_model(tmp_path, "unknown", UNKNOWN_LAYER), LoadOptions(warm_up=False))


@pytest.mark.parametrize("warm", [True, False])
def test_model_that_does_not_run_is_found(tmp_path: Path, warm: bool) -> None:
    folder = add_model(tmp_path, "mismatch", MISMATCH)
    with pytest.raises(LayerError, match="sum"):
        load_version("mismatch", folder, LoadOptions(warm_up=warm))


def test_runs_take_no_more_memory_than_is_set(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 0 #0=(2)f32\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1"
    folder = add_model(tmp_path, "pair", lines)
    load_version("pair", folder, LoadOptions(max_run_bytes=16))
    with pytest.raises(LayerError, match="at most 15 for a run"):
        load_version("pair", folder, LoadOptions(max_run_bytes=15))
