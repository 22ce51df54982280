"""Responses that are too large are refused: before the run where that is known, else before they are written."""

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from engine import PNNX_COMPUTE, Array, RunResult
from service.codec import Options
from service.codec.response import EncodedResponse
from service.config.limits import Limits
from service.errors import ServiceError
from service.infer.exchange import InferExchange, array_bytes, planned_size
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from service.v2.compression import GZIP, IDENTITY
from service.v2.exchange import V2Exchange
from tests.service.models import DIGIT_CONFIG, add_model
from tests.service.v2.bodies import json_input

WIDE = """
pnnx.Input    pnnx_input_0  0 1 0 #0=(?,10)f32
nn.ReLU       first         1 1 0 1
nn.ReLU       second        1 1 1 2
nn.Softmax    soft          1 1 2 3 dim=1
pnnx.Output   pnnx_output_0 1 0 3
"""
ROWS = 5000
BYTES = ROWS * 10 * 4


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    root = tmp_path_factory.mktemp("models")
    config = DIGIT_CONFIG.replace('[image]\ncolour = "gray"\n', "")
    return load_version("wide", Path(add_model(root, "wide", WIDE, config)), LoadOptions(warm_up=False))


def rows(count: int = ROWS) -> Array:
    return np.random.default_rng(1).standard_normal((count, 10)).astype(np.float32)


def exchange(
    model: LoadedModel, limits: Limits, accepted: str = "application/json", **options: Any
) -> InferExchange:
    body = BytesIO()
    np.save(body, rows())
    chosen = Options(**options)
    return InferExchange(model, "r", body.getvalue(), "application/x-npy", chosen, accepted, limits)


def respond(made: InferExchange | V2Exchange) -> EncodedResponse:
    decoded = made.decode()
    graph = made.model.graph if isinstance(made, InferExchange) else made._model.graph
    result: RunResult = graph.run(decoded.inputs, capture=decoded.options.capture or ())
    return made.encode(result)


def check_refused(made: InferExchange | V2Exchange, unit: str = "bytes") -> None:
    with pytest.raises(ServiceError) as caught:
        respond(made)
    assert (caught.value.status, caught.value.code) == (413, "response_too_large")
    assert caught.value.details["unit"] == unit


def test_captures_that_are_too_large_are_refused_before_the_run(model: LoadedModel) -> None:
    for kind, size in ("application/x-npz", 2 * BYTES), ("application/json", 4 * BYTES):
        assert exchange(model, Limits(response_bytes=size), kind, capture=("1", "2")).decode()
        with pytest.raises(ServiceError) as caught:
            exchange(model, Limits(response_bytes=size - 1), kind, capture=("1", "2")).decode()
        assert (caught.value.status, caught.value.code) == (413, "response_too_large")


def test_sizes_of_captures_are_those_of_the_run(model: LoadedModel) -> None:
    inputs, capture = {"0": rows(7)}, ("0", "1", "2", "3")
    captured = model.graph.run(inputs, capture=capture).captured
    assert array_bytes(captured.values()) == 4 * 7 * 10 * 4
    assert planned_size(model.graph, inputs, capture) == (4 * 7 * 10 * 4, 4 * 7 * 10 * 8)
    assert planned_size(model.graph, {"0": rows(7)[0]}, capture) == (0, 0)
    assert array_bytes([(rows(1), [rows(2)]), 1.5, None]) == 3 * 10 * 4


def test_outputs_that_are_too_large_are_refused_before_they_are_written(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = exchange(model, Limits(response_bytes=BYTES - 1))
    monkeypatch.setattr("service.infer.exchange.encode", lambda *_, **__: pytest.fail("written"))
    check_refused(made)


def test_texts_that_are_too_large_are_refused(model: LoadedModel) -> None:
    check_refused(exchange(model, Limits(response_bytes=2 * BYTES)))
    assert respond(exchange(model, Limits())).length > 2 * BYTES


def test_too_many_predictions_are_refused(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.tasks.classification.MAX_PREDICTIONS", 3 * ROWS)
    assert len(orjson.loads(respond(exchange(model, Limits())).body)["predictions"]) == ROWS
    check_refused(exchange(model, Limits(), task={"top_k": 4}), "predictions")


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("encoding", [IDENTITY, GZIP])
def test_large_responses_of_v2(model: LoadedModel, binary: bool, encoding: str) -> None:
    document = {"inputs": [json_input("0", rows())], "parameters": {"binary_data_output": binary}}
    made = V2Exchange(model, orjson.dumps(document), IDENTITY, None, encoding, Limits())
    sent = respond(made)
    assert sent.length > BYTES // 2
    if encoding == IDENTITY:
        length = int(sent.headers.get("Inference-Header-Content-Length", sent.length))
        described = orjson.loads(sent.body[:length])["outputs"][0]
        values = np.frombuffer(sent.body[length:], np.float32) if binary else np.array(described["data"])
        expected = model.graph.run({"0": rows()}).outputs[0].ravel()
        np.testing.assert_array_equal(values.astype(PNNX_COMPUTE["f32"]), expected)
    for limit in (BYTES - 1, BYTES) if not binary else (BYTES - 1,):
        limits = Limits(response_bytes=limit)
        check_refused(V2Exchange(model, orjson.dumps(document), IDENTITY, None, encoding, limits))
