"""What clients send to a real server: every kind of body, every error, and that it goes on serving."""

import base64
import re
import socket
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import httpx
import numpy as np
import pytest
from PIL import Image

from service.schemas import InferenceResponse
from tests.service.codec.payloads import npy, npz
from tests.service.models import PAIR, VECTOR, add_model
from tests.service.server.blocking import FAULT
from tests.service.server.process import ROOT, SOON, ServerProcess

SAMPLE = ROOT / "models/digits/samples/7.png"
LIMIT = 1_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = tmp_path_factory.mktemp("models")
    add_model(models, "vector", VECTOR)
    add_model(models, "pair", PAIR)
    add_model(models, "fault", FAULT)
    (models / "digits").symlink_to(ROOT / "models/digits")
    flags = (
        "--no-warm-up",
        "--max-body-bytes",
        str(LIMIT),
    )
    with ServerProcess("--models", str(models), *flags) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=SOON) as created:
        yield created


@pytest.fixture(autouse=True)
def server_goes_on_serving(client: httpx.Client) -> Iterator[None]:
    yield
    response = client.post("/infer?model=vector&trace=off", json={"inputs": [{"data": [[-1, 0, 1]]}]})
    assert response.json()["outputs"][0]["data"] == [[0, 0, 1]]


def sample(form: str) -> bytes:
    target = BytesIO()
    Image.open(SAMPLE).convert("RGB").save(target, form)
    return target.getvalue()


def image_array() -> Any:
    with Image.open(SAMPLE) as picture:
        small = picture.convert("L").resize((28, 28), Image.Resampling.BILINEAR)
    return (np.asarray(small, np.float32) / 255)[None, None]


def best(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    label: str = response.json()["predictions"][0][0]["label"]
    return label


def outputs(response: httpx.Response) -> list[Any]:
    assert response.status_code == 200, response.text
    return [output["data"] for output in response.json()["outputs"]]


def check_error(response: httpx.Response, status: int, code: str) -> None:
    body = response.json()
    assert (response.status_code, body["code"]) == (status, code), body
    assert list(body) == ["error", "code", "details"]
    assert response.headers["x-request-id"]


def test_digit_is_read_from_a_form_and_every_layer_is_shown(client: httpx.Client) -> None:
    response = client.post("/infer?model=digits", files={"file": SAMPLE.read_bytes()})
    assert best(response) == "7"
    view = InferenceResponse.model_validate(response.json(), strict=True)
    assert view.trace is not None
    assert {layer.type for layer in view.trace.layers} >= {"nn.Conv2d", "nn.Linear", "pnnx.Expression"}
    assert view.timing.total_ms > 0
    assert view.predictions is not None
    assert sum(prediction["probability"] for prediction in view.predictions[0]) <= 1 + 1e-5


@pytest.mark.parametrize("form", ["png", "jpeg", "webp", "bmp"])
def test_digit_is_read_from_a_raw_image(client: httpx.Client, form: str) -> None:
    headers = {"Content-Type": f"image/{form}"}
    assert best(client.post("/infer?model=digits", content=sample(form), headers=headers)) == "7"


def test_digit_is_read_from_base64(client: httpx.Client) -> None:
    body = {"image": base64.b64encode(SAMPLE.read_bytes()).decode()}
    assert best(client.post("/infer?model=digits", json=body)) == "7"


def test_digit_is_read_from_tensors(client: httpx.Client) -> None:
    array = image_array()
    tensor = {"shape": list(array.shape), "dtype": "f32", "data": array.ravel().tolist()}
    assert best(client.post("/infer?model=digits", json={"inputs": [tensor]})) == "7"
    tensor = {"dtype": "f32", "data": array.tolist()}
    assert best(client.post("/infer?model=digits", json={"inputs": [tensor]})) == "7"
    headers = {"Content-Type": "application/x-npy"}
    assert best(client.post("/infer?model=digits", content=npy(array), headers=headers)) == "7"


def test_several_arrays_come_as_npz(client: httpx.Client) -> None:
    body = npz(left=np.array([1, -2], np.float32), right=np.array([1, 1], np.float32))
    response = client.post("/infer?model=pair", content=body, headers={"Content-Type": "application/x-npz"})
    assert outputs(response) == [[2, -1], [2, 0]]


@pytest.mark.parametrize("text", ["-1,0.5,2\n1,1,1\n", "a,b,c\n-1,0.5,2\n1,1,1\n"], ids=["bare", "header"])
def test_tables_come_as_csv(client: httpx.Client, text: str) -> None:
    response = client.post("/infer?model=vector", content=text, headers={"Content-Type": "text/csv"})
    assert outputs(response) == [[[0, 0.5, 2], [1, 1, 1]]]


def test_responses_come_as_npz(client: httpx.Client) -> None:
    body = {"inputs": [{"data": [["NaN", "-Infinity", 2]]}]}
    headers = {"Accept": "application/x-npz"}
    response = client.post("/infer?model=vector&capture=0", json=body, headers=headers)
    arrays = np.load(BytesIO(response.content))
    np.testing.assert_array_equal(arrays["1"], np.array([[np.nan, 0, 2]], np.float32))
    np.testing.assert_array_equal(arrays["captured/0"], np.array([[np.nan, -np.inf, 2]], np.float32))


def test_nan_and_infinity_survive_json(client: httpx.Client) -> None:
    body = {"inputs": [{"data": [["NaN", "Infinity", 2]]}]}
    assert outputs(client.post("/infer?model=vector", json=body)) == [[["NaN", "Infinity", 2]]]


def test_body_may_come_in_chunks(client: httpx.Client) -> None:
    body = npy(np.array([[-1, 0.5, 2]], np.float32))
    chunks = (body[start : start + 7] for start in range(0, len(body), 7))
    assert outputs(client.post("/infer?model=vector", content=chunks)) == [[[0, 0.5, 2]]]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("GET", "/infer", 405, "method_not_allowed"),
        ("POST", "/infer?model=none", 404, "model_not_found"),
        ("POST", "/infer", 422, "model_required"),
        ("POST", "/infer?model=vector", 400, "empty_body"),
        ("POST", "/infer?model=vector&trace=x", 422, "invalid_parameter"),
        ("GET", "/graph?model=none", 404, "model_not_found"),
        ("GET", "/graph?model=pair&format=svg", 422, "invalid_parameter"),
        ("GET", "/models/none", 404, "model_not_found"),
    ],
)
def test_request_that_makes_no_sense(
    client: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    check_error(client.request(method, path), status, code)


@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b"%PDF-1.7", "application/pdf", 415, "unsupported_media_type"),
        (b"{", "application/json", 400, "invalid_json"),
        (b'{"image": "?"}', "application/json", 400, "invalid_base64"),
        (b'{"inputs": [{"data": [[1, 2], [3]]}]}', "application/json", 400, "invalid_tensor"),
        (b'{"inputs": [{"name": "x", "data": [1]}]}', "application/json", 422, "unknown_input"),
        (b'{"inputs": [{"data": [1, 2, 3]}]}', "application/json", 422, "wrong_shape"),
        (b"[" * 100_000, "application/json", 400, "invalid_json"),
        (b"\x89PNG\r\n\x1a\nnothing more", "image/png", 400, "invalid_image"),
        (b"\x93NUMPY\x01", "application/x-npy", 400, "invalid_npy"),
        (b"PK\x03\x04", "application/x-npz", 400, "invalid_npz"),
        (b"1,2\n", "text/csv", 422, "wrong_rank"),
        (b"--x", "multipart/form-data; boundary=x", 400, "invalid_multipart"),
    ],
)
def test_body_that_makes_no_sense(
    client: httpx.Client, content: bytes, content_type: str, status: int, code: str
) -> None:
    response = client.post("/infer?model=digits", content=content, headers={"Content-Type": content_type})
    check_error(response, status, code)


def test_response_of_no_acceptable_kind(client: httpx.Client) -> None:
    check_error(client.post("/infer?model=vector", headers={"Accept": "text/html"}), 406, "not_acceptable")


@pytest.mark.parametrize("declared", [True, False])
def test_body_that_is_too_large(client: httpx.Client, declared: bool) -> None:
    body = b"x" * (20 * LIMIT)
    chunks = (body[start : start + LIMIT] for start in range(0, len(body), LIMIT))
    response = client.post("/infer?model=vector", content=body if declared else chunks)
    check_error(response, 413, "body_too_large")
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize(("model", "status"), [("vector", 413), ("none", 404)])
def test_client_that_sends_all_before_it_reads_is_answered(
    server: ServerProcess, model: str, status: int
) -> None:
    request = Request(f"{server.url}/infer?model={model}", b"x" * (20 * LIMIT), method="POST")
    with pytest.raises(HTTPError) as caught:
        urlopen(request, timeout=SOON)  # the test's own server
    with caught.value as response:
        assert response.code == status


def test_image_that_is_too_large(client: httpx.Client) -> None:
    target = BytesIO()
    Image.new("L", (8192, 8193)).save(target, "PNG")
    check_error(client.post("/infer?model=digits", content=target.getvalue()), 413, "image_too_large")


def test_tensor_that_is_too_large(client: httpx.Client) -> None:
    body = {"inputs": [{"shape": [1 << 40], "data": [1]}]}
    check_error(client.post("/infer?model=vector", json=body), 413, "tensor_too_large")


def test_fault_of_the_server_is_found_in_its_log_only(server: ServerProcess, client: httpx.Client) -> None:
    body = {"inputs": [{"data": [1]}]}
    response = client.post("/infer?model=fault", json=body, headers={"X-Request-ID": "fault-1"})
    check_error(response, 500, "internal_error")
    assert response.json()["details"] == {"request_id": "fault-1"}
    assert "a fault" not in response.text
    assert "Traceback" not in response.text
    server.wait_for_line(re.compile(r"ERROR +unhandled error request_id=fault-1"))
    server.wait_for_line(re.compile("RuntimeError: a fault of the server"))


def test_bytes_that_are_no_http(server: ServerProcess) -> None:
    port = urlsplit(server.url).port
    assert port is not None
    with socket.create_connection(("127.0.0.1", port), SOON) as connection:
        connection.sendall(b"\x00\x01\x02\r\n\r\n")
        response = connection.makefile("rb").read()
    assert response.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"invalid_http"' in response


def test_request_id_comes_back(client: httpx.Client) -> None:
    body = {"inputs": [{"data": [[1, 2, 3]]}]}
    response = client.post("/infer?model=vector", json=body, headers={"X-Request-ID": "mine"})
    assert (response.headers["x-request-id"], response.json()["request_id"]) == ("mine", "mine")


def test_graph_models_and_description_are_served(client: httpx.Client) -> None:
    assert client.get("/graph?model=digits").json()["execution_order"]
    assert client.get("/graph?model=digits&format=dot").text.startswith('digraph "digits" {')
    assert "flowchart TD" in client.get("/graph?model=digits&format=mermaid").text
    names = [model["name"] for model in client.get("/models").json()["models"]]
    assert names == ["digits", "fault", "pair", "vector"]
    assert client.get("/models/digits").json()["labels"] == [str(digit) for digit in range(10)]
    assert "/infer" in client.get("/openapi.json").json()["paths"]
    assert client.get("/docs").status_code == 200
    assert client.get("/").status_code == 200
