from pathlib import Path

import numpy as np
import pytest

from engine import LayerError, RuntimeGraph, UnsupportedOperatorError
from service.codec import Limits
from service.loaded_model import load_model, warm_up
from service.model_config import ModelConfigError
from service.model_files import ModelFilesError
from tests.engine.models import make_graph, write_model
from tests.service.models import DIGIT, DIGIT_CONFIG, MISMATCH, UNKNOWN_LAYER, VECTOR, add_model

LIMITS = Limits()


def count_runs(monkeypatch: pytest.MonkeyPatch) -> list[list[np.ndarray]]:
    runs: list[list[np.ndarray]] = []
    forward = RuntimeGraph.forward

    def counted(graph: RuntimeGraph, inputs: list[np.ndarray]) -> list[np.ndarray]:
        runs.append(inputs)
        return forward(graph, inputs)

    monkeypatch.setattr(RuntimeGraph, "forward", counted)
    return runs


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
    model = load_model("linear", folder, LIMITS, warm=True)
    assert (model.name, model.parameter_count, model.byte_count) == ("linear", 8, 32)
    assert model.graph.forward([np.ones((1, 3), np.float32)])[0].tolist() == [[4, 4]]


def test_configuration_is_read_and_checked(tmp_path: Path) -> None:
    model = load_model("digit", add_model(tmp_path, "digit", DIGIT, DIGIT_CONFIG), LIMITS, warm=True)
    assert model.config.task == "classification"
    config = DIGIT_CONFIG.replace('"p9"', '"p9", "p10"')
    with pytest.raises(ModelConfigError, match="labels"):
        load_model("wrong", add_model(tmp_path, "wrong", DIGIT, config), LIMITS, warm=True)


def test_unsupported_operators_are_found_at_load(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match=r"nn.RELU relu \(nearest known: .*nn.ReLU"):
        load_model("unknown", add_model(tmp_path, "unknown", UNKNOWN_LAYER), LIMITS, warm=False)


def test_warm_up_finds_a_model_that_does_not_run(tmp_path: Path) -> None:
    folder = add_model(tmp_path, "mismatch", MISMATCH)
    load_model("mismatch", folder, LIMITS, warm=False)
    with pytest.raises(LayerError, match="sum"):
        load_model("mismatch", folder, LIMITS, warm=True)


def test_warm_up_runs_once_on_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    folder = add_model(tmp_path, "vector", VECTOR)
    load_model("vector", folder, LIMITS, warm=False)
    assert runs == []
    load_model("vector", folder, LIMITS, warm=True)
    assert [[array.tolist() for array in inputs] for inputs in runs] == [[[[0, 0, 0]]]]


def test_warm_up_leaves_out_what_declares_no_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = count_runs(monkeypatch)
    lines = "pnnx.Input in 0 1 0\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1"
    warm_up(make_graph(tmp_path, lines), LIMITS)
    assert runs == []


def test_warm_up_holds_no_wrong_guess_against_a_model(tmp_path: Path) -> None:
    window = (
        "ceil_mode=False dilation=(1,1) kernel_size=(4,4) padding=(0,0) return_indices=False stride=(4,4)"
    )
    lines = f"""
    pnnx.Input   in   0 1 0 #0=(1,1,?,?)f32
    nn.MaxPool2d pool 1 1 0 1 {window}
    pnnx.Output  out  1 0 1
    """
    graph = make_graph(tmp_path, lines)
    with pytest.raises(LayerError):
        graph.forward([np.zeros((1, 1, 1, 1), np.float32)])
    warm_up(graph, LIMITS)


def test_warm_up_allocates_no_more_than_a_request_may(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 0 #0=(1000000,1000000)f32\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1"
    with pytest.raises(ModelFilesError, match="1000000000000 elements; at most 16777216 are taken"):
        warm_up(make_graph(tmp_path, lines), LIMITS)


def test_runs_take_no_more_memory_than_is_set(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 0 #0=(2)f32\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1"
    folder = add_model(tmp_path, "pair", lines)
    load_model("pair", folder, LIMITS, warm=True, max_run_bytes=16)
    with pytest.raises(LayerError, match="at most 15 for a run"):
        load_model("pair", folder, LIMITS, warm=True, max_run_bytes=15)
