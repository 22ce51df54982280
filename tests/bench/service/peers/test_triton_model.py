"""Triton's model, with what Triton and onnxruntime give it played by the test."""

import importlib
import json
import sys
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.dtypes import Array

MODULE = "tests.bench.service.peers.triton_model"


class Session:
    """Returns each row's sum, and notes its file and the rows of its runs."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: list[int] = []

    def run(self, array: Array) -> Array:
        self.rows.append(len(array))
        sums: Array = array.sum(axis=1, keepdims=True)
        return sums


@pytest.fixture
def model_class(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Import the model as Triton does, with its modules in place."""
    utils, session = ModuleType("triton_python_backend_utils"), ModuleType("session")
    named = {
        "get_input_tensor_by_name": lambda request, name: SimpleNamespace(as_numpy=lambda: request[name]),
        "Tensor": lambda name, array: (name, array.tolist()),
        "InferenceResponse": lambda tensors: tensors,
    }
    vars(utils).update(named)
    vars(session)["Session"] = Session
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utils)
    monkeypatch.setitem(sys.modules, "tests.bench.service.peers.session", session)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    yield importlib.import_module(MODULE).TritonPythonModel
    sys.modules.pop(MODULE, None)


def loaded(model_class: Any, max_batch: int) -> Any:
    model = model_class()
    model.initialize({"model_config": json.dumps({"max_batch_size": max_batch})})
    return model


def request(*rows: float) -> dict[str, Array]:
    return {"0": np.array(rows, np.float32)[:, None]}


@pytest.mark.parametrize(("max_batch", "file"), [(1, "model.onnx"), (8, "batched.onnx")])
def test_model_of_any_number_of_rows_is_loaded_to_batch(model_class: Any, max_batch: int, file: str) -> None:
    assert loaded(model_class, max_batch)._session.file == file


def test_requests_are_run_as_one_and_answered_each_with_its_rows(model_class: Any) -> None:
    model = loaded(model_class, 8)
    responses = model.execute([request(1), request(2, 3), request(4)])
    assert responses == [[("scores", [[1]])], [("scores", [[2], [3]])], [("scores", [[4]])]]
    assert model._session.rows == [4]


def test_request_alone_is_run_as_it_is(model_class: Any) -> None:
    model = loaded(model_class, 1)
    assert model.execute([request(5)]) == [[("scores", [[5]])]]
