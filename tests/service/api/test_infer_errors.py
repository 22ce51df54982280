"""`POST /infer` in this process: every way to fail."""

import numpy as np
import pytest
from httpx import AsyncClient

from engine import LayerError, RunResult, RuntimeGraph
from service.infer import exchange
from tests.service.api.responses import VECTOR, bright, check_error, values
from tests.service.codec.payloads import npz

pytestmark = pytest.mark.anyio


async def test_unknown_model(client: AsyncClient) -> None:
    details = check_error(await client.post("/infer?model=vectro", json=VECTOR), 404, "model_not_found")
    assert details["models"] == ["digit", "pair", "vector"]
    assert details["nearest"] == ["vector"]


async def test_model_is_required_among_several(client: AsyncClient) -> None:
    check_error(await client.post("/infer", json=VECTOR), 422, "model_required")


@pytest.mark.parametrize(
    "query", ["trace=maybe", "top_k=0", "top_k=x", "tarce=off", "timeout=0", "timeout=x"]
)
async def test_invalid_parameter(client: AsyncClient, query: str) -> None:
    response = await client.post(f"/infer?model=vector&{query}", json=VECTOR)
    details = check_error(response, 422, "invalid_parameter")
    assert details["parameter"] == query.split("=", maxsplit=1)[0]


async def test_a_timeout_may_be_less_than_a_second(client: AsyncClient) -> None:
    response = await client.post("/infer?model=vector&timeout=0.9", json=VECTOR)
    assert response.status_code in (200, 504), response.text


async def test_unknown_operand_to_capture(client: AsyncClient) -> None:
    response = await client.post(
        "/infer?model=pair&capture=ss", content=npz(left=np.ones(2), right=np.ones(2))
    )
    assert check_error(response, 422, "unknown_operand") == {"operand": "ss", "nearest": ["s", "sum"]}
    assert response.json()["error"].endswith("GET /graph lists them all; did you mean 's'?")


@pytest.mark.parametrize(
    ("query", "status", "code", "meant"),
    [
        ("?model=vectors", 404, "model_not_found", "vector"),
        ("?model=vector&trac=off", 422, "invalid_parameter", "trace"),
        ("?model=vector&Timeouts=3", 422, "invalid_parameter", "timeout"),
    ],
)
async def test_the_name_that_was_meant(
    client: AsyncClient, query: str, status: int, code: str, meant: str
) -> None:
    response = await client.post(f"/infer{query}", json=VECTOR)
    check_error(response, status, code)
    assert response.json()["error"].endswith(f"; did you mean {meant!r}?")


async def test_response_of_no_acceptable_kind(client: AsyncClient) -> None:
    response = await client.post("/infer?model=vector", json=VECTOR, headers={"Accept": "text/html"})
    check_error(response, 406, "not_acceptable")


async def test_body_of_no_known_kind(client: AsyncClient) -> None:
    headers = {"Content-Type": "application/pdf"}
    response = await client.post("/infer?model=vector", content=b"%PDF", headers=headers)
    check_error(response, 415, "unsupported_media_type")


async def test_empty_body(client: AsyncClient) -> None:
    check_error(await client.post("/infer?model=vector"), 400, "empty_body")


async def test_body_that_is_too_large(client: AsyncClient) -> None:
    response = await client.post("/infer?model=vector", content=b"x" * 10_001)
    check_error(response, 413, "body_too_large")
    assert response.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("content", "content_type", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b"\x89PNG\r\n\x1a\n", "image/png", 400, "invalid_image"),
        (b"\x93NUMPY", "application/x-npy", 400, "invalid_npy"),
        (b"PK", "application/x-npz", 400, "invalid_npz"),
        (b"1,2,3\n4,5\n", "text/csv", 400, "invalid_csv"),
        (b"--x", "multipart/form-data; boundary=x", 400, "invalid_multipart"),
        (b'{"image": "?"}', "application/json", 400, "invalid_base64"),
    ],
)
async def test_body_that_is_not_what_it_claims(
    client: AsyncClient, content: bytes, content_type: str, status: int, code: str
) -> None:
    model = "vector" if code in ("invalid_csv", "invalid_npy", "invalid_npz") else "digit"
    headers = {"Content-Type": content_type}
    check_error(await client.post(f"/infer?model={model}", content=content, headers=headers), status, code)


async def test_model_that_takes_no_images(client: AsyncClient) -> None:
    check_error(await client.post("/infer?model=vector", content=bright(1)), 422, "not_an_image_model")


async def test_tensor_that_does_not_fit_the_model(client: AsyncClient) -> None:
    body = {"inputs": [{"name": "0", "data": [[[1.0, 2.0, 3.0]]]}]}
    check_error(await client.post("/infer?model=vector", json=body), 422, "wrong_rank")


async def test_scores_that_are_no_numbers_are_not_a_class(client: AsyncClient) -> None:
    body = {"inputs": [{"data": [[[["NaN"] * 10]]]}]}
    response = await client.post("/infer?model=digit&trace=off", json=body)
    assert response.status_code == 200
    assert response.json()["predictions"] == [[]]
    assert response.json()["warnings"] == [
        "no class of item 0 of the batch has a score that is a number: there are no predictions"
    ]
    assert response.json()["outputs"][0]["data"] == [["NaN"] * 10]
    sound = await client.post("/infer?model=digit&trace=off", json={"inputs": [{"data": [[[[1] * 10]]]}]})
    assert "warnings" not in sound.json()


@pytest.mark.parametrize("text", [b"image.png", b"models/digits/7.png"])
async def test_name_of_a_file_in_place_of_the_file(client: AsyncClient, text: bytes) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + text + b"\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    response = await client.post("/infer?model=digit", content=form, headers=headers)
    check_error(response, 422, "unknown_field")
    assert f"write file=@{text.decode()}" in response.json()["error"]


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"two\nlines", b"x" * 500])
async def test_field_that_names_no_file_is_not_shown(client: AsyncClient, data: bytes) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n' + data + b"\r\n--b--\r\n"
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    response = await client.post("/infer?model=digit", content=form, headers=headers)
    check_error(response, 422, "unknown_field")
    assert "@" not in response.json()["error"]


async def test_layer_that_fails_on_the_request(client: AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **options: object) -> RunResult:
        raise LayerError("nn.Linear fc, operand 3: shape (1, 2); expected (n, 3)")

    monkeypatch.setattr(RuntimeGraph, "run", fail)
    check_error(await client.post("/infer?model=vector", json=VECTOR), 422, "layer_failed")


async def test_fault_in_a_worker_is_answered_and_logged_under_the_request(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> bytes:
        raise ZeroDivisionError("secret")

    with monkeypatch.context() as patch:
        patch.setattr(exchange, "encode", fail)
        response = await client.post("/infer?model=vector", json=VECTOR, headers={"X-Request-ID": "r5"})
    assert check_error(response, 500, "internal_error") == {"request_id": "r5"}
    assert "secret" not in response.text
    assert [record for record in caplog.records if record.exc_info]
    assert values(await client.post("/infer?model=vector", json=VECTOR)) == [[0, 0.5, 2]]
