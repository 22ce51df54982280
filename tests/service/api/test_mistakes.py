"""Typical mistakes over HTTP: status, code, and a message that says what to do. More are in tests/service/codec."""

from base64 import b64encode
from typing import Any

import pytest
from httpx import AsyncClient

from tests.service.api.responses import bright, check_error

pytestmark = pytest.mark.anyio

PNG, GIF = bright(5), bright(5, "GIF")
HEIC = b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic" + bytes(100)
URL = "https://example.com/cat.png"
NOT_FETCHED = "is a URL; URLs are not fetched; send the picture itself"
UNSUPPORTED = "the image is {}, which is not supported; expected PNG, JPEG, WEBP, BMP"
PROBES = "; the probes are GET /livez and GET /readyz"


def typed(content: bytes, kind: str) -> dict[str, Any]:
    return {"content": content, "headers": {"Content-Type": kind}}


NUMBERS = {"inputs": [{"name": "0", "shape": [1, 1, 1, 10], "datatype": "FP32", "data": URL}]}
DIGIT, VECTOR = "POST /infer?model=digit", "POST /infer?model=vector"
MISTAKES: list[tuple[str, dict[str, Any], int, str, str]] = [
    ("GET /health", {}, 404, "not_found", PROBES),
    ("GET /healthz", {}, 404, "not_found", PROBES),
    ("GET /model", {}, 404, "not_found", "; did you mean '/models'?"),
    ("GET /metric", {}, 404, "not_found", "; did you mean '/metrics'?"),
    ("GET /docs/", {}, 404, "not_found", "; did you mean '/docs'?"),
    ("GET /console/none", {}, 404, "not_found", "; did you mean '/console'?"),
    ("GET /v2/models/digit/redy", {}, 404, "not_found", "; did you mean '/v2/models/digit/ready'?"),
    (
        "POST /predict",
        {"content": PNG},
        404,
        "not_found",
        "nothing is at '/predict'; /docs lists what there is",
    ),
    ("GET /infer", {}, 405, "method_not_allowed", "GET is not allowed on /infer; use POST"),
    (
        "DELETE /models/digit",
        {},
        405,
        "method_not_allowed",
        "DELETE is not allowed on /models/digit; use GET",
    ),
    ("POST /infer", {"content": PNG}, 422, "model_required", "say which model, as in ?model=digit"),
    ("POST /infer?model=digt", {"content": PNG}, 404, "model_not_found", "; did you mean 'digit'?"),
    ("GET /models/digt", {}, 404, "model_not_found", "; did you mean 'digit'?"),
    (DIGIT, {"content": b""}, 400, "empty_body", "the body is empty; send an image, JSON, npy, npz or CSV"),
    (DIGIT, typed(b"{", "application/json"), 400, "invalid_json", "the body is not JSON: "),
    (
        DIGIT,
        {"json": []},
        400,
        "invalid_json",
        "expected one of image, images, inputs, text, texts in an object",
    ),
    (DIGIT, {"json": {"input": [1]}}, 422, "unknown_field", "; did you mean 'inputs'?"),
    (DIGIT, {"json": {"image": "x"}}, 400, "invalid_base64", "image is not base64: "),
    (DIGIT, {"json": {"image": URL}}, 400, "invalid_base64", f"image {NOT_FETCHED}"),
    (DIGIT, {"json": {"images": [URL]}}, 400, "invalid_base64", f"images[0] {NOT_FETCHED}"),
    (DIGIT, {"content": URL.encode()}, 415, "unsupported_media_type", f"the body {NOT_FETCHED}"),
    (DIGIT, typed(URL.encode(), "image/png"), 400, "invalid_image", f"the image {NOT_FETCHED}"),
    (DIGIT, {"files": {"image": ("a.png", URL.encode())}}, 400, "invalid_image", f"the image {NOT_FETCHED}"),
    (
        f"{DIGIT}&url={URL}",
        {"content": PNG},
        422,
        "invalid_parameter",
        "; URLs are not fetched; send the picture",
    ),
    *(
        (DIGIT, request, 415, "unsupported_image_format", UNSUPPORTED.format("GIF"))
        for request in (
            {"content": GIF},
            *(
                typed(GIF, kind)
                for kind in ("image/gif", "image/png", "application/octet-stream", "text/plain")
            ),
            {"files": {"image": ("a.gif", GIF, "image/gif")}},
            {"json": {"image": b64encode(GIF).decode()}},
        )
    ),
    (
        DIGIT,
        {"files": {"image": ("a.png", b"")}},
        400,
        "invalid_image",
        "can be read: it is empty; expected PNG",
    ),
    (DIGIT, {"content": HEIC}, 415, "unsupported_image_format", UNSUPPORTED.format("HEIC")),
    (
        DIGIT,
        typed(b"%PDF-1.4", "application/pdf"),
        415,
        "unsupported_media_type",
        "Content-Type application/pdf is",
    ),
    (
        DIGIT,
        typed(PNG[:50], "image/png"),
        400,
        "invalid_image",
        "the image is damaged: image file is truncated",
    ),
    (DIGIT, typed(b"1,2", "text/csv"), 422, "wrong_rank", "CSV is for two: send npy or JSON"),
    (DIGIT, typed(b"zz", "application/x-npz"), 400, "invalid_npz", "File is not a zip file"),
    (DIGIT, typed(b"word", "text/plain"), 422, "not_a_text_model", "its model.toml has no [text] table"),
    (VECTOR, {"content": PNG}, 422, "not_an_image_model", "its model.toml has no [image] table"),
    (
        VECTOR,
        {"json": {"inputs": [{"name": "1", "data": [[1, 2]]}]}},
        422,
        "unknown_input",
        "it takes pnnx_input_0 (0: ",
    ),
    (f"{DIGIT}&topk=3", {"content": PNG}, 422, "invalid_parameter", "; did you mean 'top_k'?"),
    (
        f"{DIGIT}&top_k=x",
        {"content": PNG},
        422,
        "invalid_parameter",
        "'top_k' is 'x'; expected a whole number from 1",
    ),
    (
        f"{DIGIT}&trace=maybe",
        {"content": PNG},
        422,
        "invalid_parameter",
        "'trace' is 'maybe'; expected off, on or",
    ),
    (
        DIGIT,
        {"content": PNG, "headers": {"Accept": "text/html"}},
        406,
        "not_acceptable",
        "responses are application/",
    ),
    (
        DIGIT,
        {"content": PNG, "headers": {"Content-Encoding": "gzip"}},
        415,
        "unsupported_encoding",
        "uncompressed",
    ),
    (DIGIT, {"content": bytes(20_000)}, 413, "body_too_large", ": send less, or raise --max-body-bytes"),
    (
        "POST /models/digit:explain?target=p55",
        {"content": PNG},
        422,
        "no_such_prediction",
        "; did you mean 'p5'?",
    ),
    (
        "POST /models/digit:explain?metod=words",
        {"content": PNG},
        422,
        "invalid_parameter",
        "; did you mean 'method'?",
    ),
    (
        "POST /models/digit:explain?timeout=-1",
        {"content": PNG},
        422,
        "invalid_parameter",
        "parameter 'timeout': input should be greater than 0",
    ),
    ("POST /models/digit:explan", {}, 405, "method_not_allowed", "; did you mean '/models/digit:explain'?"),
    ("POST /models/digit:predict", {}, 405, "method_not_allowed", "did you mean '/v1/models/digit:predict'?"),
    ("GET /v1/models/digit", {}, 404, "not_found", "; did you mean '/v2/models/digit'?"),
    *(
        (f"POST /v1/models/digit:{verb}", {"json": body}, 400, code, message)
        for verb in ("predict", "explain")
        for body, code, message in (
            (
                {"instances": [URL]},
                "invalid_tensor",
                "data holds a URL; expected numbers; URLs are not fetched",
            ),
            (
                {"instances": URL},
                "invalid_json",
                f"instances is '{URL}'; expected a list of one row or more; URLs",
            ),
            ({"instances": []}, "invalid_json", "instances is []; expected a list of one row or more"),
            ({"instances": [{"b64": URL}]}, "invalid_base64", f"images[0] {NOT_FETCHED}"),
            (
                {"instances": [{"image": URL}]},
                "invalid_tensor",
                'or a picture as {"b64": …}; URLs are not fetched',
            ),
            (
                {"instances": [{"image": "iVBO"}]},
                "invalid_tensor",
                "instances[0].image is a string; expected numbers,",
            ),
        )
    ),
    (
        "POST /v1/models/digit:predict",
        {"json": [1]},
        400,
        "invalid_json",
        "expected one of instances, inputs,",
    ),
    ("POST /v1/models/digit:predict", {"content": PNG}, 400, "invalid_json", "POST /infer accepts pictures"),
    ("POST /v2/models/digit/infer", {"content": PNG}, 400, "invalid_json", "POST /infer accepts pictures"),
    ("POST /v2/models/digit/infer", {"json": {"input": []}}, 400, "invalid_request", "and found ['input']"),
    (
        "POST /v2/models/digit/infer",
        {"json": NUMBERS},
        400,
        "invalid_tensor",
        "data holds a URL",
    ),
    ("GET /traces/none", {}, 404, "trace_not_found", "GET /traces lists the stored ones"),
    (
        "POST /v2/repository/models/digit/load",
        {},
        403,
        "model_control_off",
        "--model-control explicit allows it",
    ),
]


@pytest.mark.parametrize(("call", "request_", "status", "code", "message"), MISTAKES)
async def test_a_mistake_is_answered_with_what_to_do(
    client: AsyncClient, call: str, request_: dict[str, Any], status: int, code: str, message: str
) -> None:
    method, path = call.split()
    response = await client.request(method, path, **request_)
    if path.startswith("/v2"):
        assert response.status_code == status
    else:
        check_error(response, status, code)
    assert message in response.json()["error"]
    assert "Value error" not in response.text
