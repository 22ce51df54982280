"""The client against a real server."""

import io
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from service.client import (
    BusyError,
    Client,
    ClientError,
    ConnectionFailedError,
    DeadlineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    ResponseError,
    Retries,
)
from tests.engine.models import write_model
from tests.service.models import PAIR, add_model
from tests.service.server.process import SOON, ServerProcess

ROWS = np.array([[-1, 2, -3], [4, -5, 6]], np.float32)
POSITIVE = np.array([[0, 2, 0], [4, 0, 6]], np.float32)
LEFT, RIGHT = np.array([1, -5], np.float32), np.array([2, 3], np.float32)


def test_arrays_come_back_as_arrays(client: Client) -> None:
    result = client.infer(ROWS, model="vector")
    assert list(result.outputs) == ["1"]
    np.testing.assert_array_equal(result["1"], POSITIVE)
    assert result[0] is result["1"]
    assert result[0].dtype == np.float32
    assert result.request_id


@pytest.mark.parametrize("inputs", [[LEFT, RIGHT], {"a": LEFT, "b": RIGHT}, {"right": RIGHT, "left": LEFT}])
@pytest.mark.parametrize("capture", [(), ("s",)])
def test_several_inputs_by_place_and_by_name(
    client: Client, inputs: object, capture: tuple[str, ...]
) -> None:
    result = client.infer(inputs, model="pair", capture=capture)  # type: ignore[arg-type]  # one of the kinds above
    np.testing.assert_array_equal(result["s"], [3, -2])
    np.testing.assert_array_equal(result["t"], [3, 0])
    assert list(result.captured) == list(capture)


def test_arrays_without_names_follow_the_inputs_of_a_model_that_was_replaced(tmp_path: Path) -> None:
    lines = PAIR.replace("add(", "sub(")
    swapped = lines.replace("left   0 1 a #a", "left   0 1 b #b").replace(
        "right  0 1 b #b", "right  0 1 a #a"
    )
    folder = add_model(tmp_path, "pair", lines)
    with (
        ServerProcess("--models", str(tmp_path), "--model-control", "explicit", "--no-warm-up") as server,
        Client(server.url) as client,
    ):
        for text, expected in ((lines, LEFT - RIGHT), (swapped, RIGHT - LEFT)):
            write_model(folder, text)
            httpx.post(
                f"{server.url}/v2/repository/models/pair/load", json={}, timeout=SOON
            ).raise_for_status()
            np.testing.assert_array_equal(client.infer([LEFT, RIGHT], model="pair")["s"], expected)


def test_operands_on_the_way_are_returned_too(client: Client) -> None:
    result = client.infer(ROWS, model="vector", capture=["0"])
    np.testing.assert_array_equal(result.captured["0"], ROWS)
    np.testing.assert_array_equal(result["1"], POSITIVE)


def test_views_and_other_byte_orders_are_sent_as_they_read(client: Client) -> None:
    for array in (ROWS[:, ::-1], ROWS.astype(">f4"), np.asfortranarray(ROWS)):
        np.testing.assert_array_equal(client.infer(array, model="vector")[0], np.maximum(array, 0))


def test_pictures_by_path_bytes_and_pil(client: Client, picture: Path) -> None:
    with Image.open(picture) as image:
        for given in (picture, str(picture), picture.read_bytes(), image):
            response = client.predict(given, model="digit", top_k=2)
            assert [found["label"] for found in response.predictions[0]][:1] == ["p7"]
            assert len(response.predictions[0]) == 2
            assert response.outputs["2"].argmax() == 7
            assert client.infer(given, model="digit")[0].argmax() == 7


def test_a_picture_comes_back_drawn(client: Client, picture: Path) -> None:
    drawn = client.render(picture, model="digit")
    assert Image.open(io.BytesIO(drawn)).format == "PNG"
    with pytest.raises(RefusedError):
        client.render(b"no picture", model="digit")


def test_a_trace_names_every_layer(client: Client) -> None:
    trace = client.trace(ROWS, model="vector", statistics=True)
    assert [layer.type for layer in trace.layers] == ["pnnx.Input", "nn.ReLU", "pnnx.Output"]
    relu = trace.layers[1]
    assert (relu.inputs[0].shape, relu.outputs[0].dtype) == ((2, 3), "f32")
    assert relu.outputs[0].statistics is not None
    assert relu.outputs[0].statistics["max"] == 6
    assert trace.response.model == "vector"


def test_models_and_graphs(client: Client) -> None:
    assert {model["name"] for model in client.models()} == {"blocking", "digit", "pair", "vector"}
    assert client.model("digit")["labels"][7] == "p7"
    assert [node["type"] for node in client.graph("vector")["nodes"]][1] == "nn.ReLU"
    assert client.draw("vector", notation="dot").startswith("digraph")


@pytest.mark.parametrize(
    ("inputs", "model", "error", "code"),
    [
        (ROWS, "vectro", NotFoundError, "model_not_found"),
        (np.zeros((1, 4), np.float32), "vector", InvalidInputError, "wrong_shape"),
        (b"no picture", "digit", InvalidInputError, None),
        (ROWS, None, InvalidInputError, "model_required"),
    ],
)
def test_errors_have_classes_and_codes(
    client: Client, inputs: object, model: str | None, error: type[InvalidInputError], code: str | None
) -> None:
    with pytest.raises(error) as raised:
        client.infer(inputs, model=model)  # type: ignore[arg-type]  # one of the kinds above
    assert code in (None, raised.value.code)
    assert raised.value.request_id
    assert raised.value.details or code is None


def test_what_is_no_input_is_reported_before_anything_is_sent(client: Client) -> None:
    for wrong in (3, [], [ROWS, b"x"], object()):
        with pytest.raises(TypeError, match="expected an array"):
            client.infer(wrong, model="vector")  # type: ignore[arg-type]  # that is the point
    with pytest.raises(ValueError, match="the model takes 2: a, b"):
        client.infer([LEFT], model="pair")
    with pytest.raises(FileNotFoundError):
        client.predict("none.png", model="digit")


def test_predictions_without_boxes_are_no_detections(client: Client, picture: Path) -> None:
    with pytest.raises(ResponseError, match="model digit predicts no boxes"):
        client.detect(picture, model="digit")


def test_a_deadline_ends_the_call_here_and_at_the_server(server: ServerProcess, client: Client) -> None:
    number = np.array([7], np.float32)
    for call in (client.infer, client.predict):
        with pytest.raises(DeadlineError):
            call(number, model="blocking", deadline=3)  # a busy machine needs a part of it to begin the run
        assert server.entered.take() == 7
        server.gate.give()
    # the server has given both up: neither has reached the layer after the one that blocks
    assert client.infer(ROWS, model="vector", deadline=30)[0].shape == (2, 3)
    with pytest.raises(DeadlineError):
        client.infer(ROWS, model="vector", deadline=0)


def test_a_full_queue_is_waited_for(server: ServerProcess) -> None:
    with Client(server.url, retries=Retries(seconds=60)) as client, ThreadPoolExecutor(2) as pool:
        running, queued = (
            pool.submit(client.infer, np.array([n], np.float32), model="blocking") for n in (1, 2)
        )
        first = server.entered.take()
        with Client(server.url, retries=Retries(seconds=0)) as impatient:
            refused = None
            while refused is None:  # until the second call has reached the queue
                try:
                    impatient.infer(np.array([3], np.float32), model="blocking", deadline=0.05)
                except DeadlineError:
                    continue
                except BusyError as error:
                    refused = error
            assert (refused.status, refused.code) == (503, "queue_full")
        server.gate.give(2)  # the third is never run, and the gate is that of all tests
        assert {first, server.entered.take()} == {1, 2}
        assert {int(call.result(60)[0][0]) for call in (running, queued)} == {1, 2}


def test_threads_share_a_client_and_its_connections(server: ServerProcess) -> None:
    def ask(number: int) -> float:
        return float(client.infer(np.full((1, 3), number, np.float32), model="vector")[0][0, 0])

    with Client(server.url) as client, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(200))) == list(range(200))
        pooled = client._http._transport._pool.connections  # type: ignore[attr-defined]  # what httpx holds open
        assert len(pooled) <= 8
        assert all(connection.is_idle() for connection in pooled)
    assert all(connection.is_closed() for connection in pooled)


def test_nobody_responses() -> None:
    with (
        Client("http://127.0.0.1:9", retries=Retries(seconds=0.2)) as client,
        pytest.raises(ConnectionFailedError),
    ):
        client.models()


def test_import_is_light() -> None:
    code = (
        "import sys, service.client\n"
        "print(sorted({'engine', 'fastapi', 'starlette', 'pydantic', 'llvmlite', 'PIL'} & set(sys.modules)))\n"
        "print(sorted(m for m in sys.modules if m.startswith('service') and not m.startswith('service.client')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['service']"]


def test_errors_have_one_root() -> None:
    for error in (ResponseError, BusyError, ConnectionFailedError, DeadlineError):
        assert issubclass(error, ClientError)


def test_a_prediction_is_explained(client: Client, picture: Path) -> None:
    found = client.explain(picture.read_bytes(), model="digit", target="p7")
    assert (found.method, found.target["label"]) == ("occlusion", "p7")
    assert found.heatmap is not None
    assert found.heatmap.max() > 0
    assert Image.open(io.BytesIO(found.overlay or b"")).size == (10, 1)
    other = client.explain(picture, model="digit", method="occlusion", place=1, version=1, deadline=60)
    assert other.target["label"] != "p7"
    with pytest.raises(TypeError, match="model: is missing"):
        client.explain(picture)
    with pytest.raises(InvalidInputError, match="takes no texts"):
        client.explain("a text", model="digit")
