"""Typical mistakes: messages say which name was meant, and that URLs are not fetched."""

from typing import Any

import pytest

from engine import Port
from service.codec import decode, parse_options
from service.v2.ports import find_port
from tests.service.codec.payloads import GRAY, LIMITS, ONE_IMAGE, TWO, VECTOR, decode_json, form, npz, refused

URL = "https://example.com/cat.png"
ADVICE = "URLs are not fetched; send the picture itself"


@pytest.mark.parametrize(
    ("document", "code", "meant"),
    [
        ({"image": {}, "imputs": []}, "unknown_field", "inputs"),
        ({"inputs": [{"shapes": [1, 3], "data": [[1, 2, 3]]}]}, "unknown_field", "shape"),
        ({"inputs": {"pnnx_input": [[1, 2, 3]]}}, "unknown_input", "pnnx_input_0"),
        ({"inputs": [[1, 2, 3]], "parameters": {"captures": "1"}}, "invalid_parameter", "capture"),
    ],
)
def test_names_in_json(document: Any, code: str, meant: str) -> None:
    refused(lambda: decode_json(document), 422, code, f"; did you mean '{meant}'?")


def test_names_in_other_bodies() -> None:
    arrays = npz(B=[1], a=[1.0, 2.0])  # type: ignore[arg-type]
    refused(lambda: decode(arrays, None, TWO, GRAY, LIMITS), 422, "unknown_input", "did you mean 'b'?")
    body, content_type = form(('name="topk"', b"3"))
    refused(
        lambda: decode(body, content_type, ONE_IMAGE, GRAY, LIMITS), 422, "unknown_field", "mean 'top_k'?"
    )


@pytest.mark.parametrize("kind", ["input", "output"])
def test_names_of_the_open_inference_protocol(kind: str) -> None:
    ports = [Port("operator", name, (None, 3), "f32") for name in ("images", "masks")]
    refused(lambda: find_port(ports, "image", kind), 400, f"unknown_{kind}", "; did you mean 'images'?")


def test_parameters_that_are_read_elsewhere() -> None:
    refused(
        lambda: parse_options({"modle": "x"}, others=["model"]), 422, "invalid_parameter", "mean 'model'?"
    )


@pytest.mark.parametrize("scheme", ["https", "HTTP", "s3", "file"])
def test_a_url_in_place_of_a_picture(scheme: str) -> None:
    url = URL.replace("https", scheme)
    for document, status, code in (
        ({"image": url}, 400, "invalid_base64"),
        ({"images": [url]}, 400, "invalid_base64"),
        ({"inputs": {"0": url}}, 400, "invalid_base64"),
        ({"url": url}, 422, "unknown_field"),
    ):
        refused(lambda: decode_json(document, ONE_IMAGE, GRAY), status, code, ADVICE)  # noqa: B023
    body = url.encode()
    for content_type in ("application/x-www-form-urlencoded", None):
        refused(
            lambda: decode(body, content_type, ONE_IMAGE, GRAY, LIMITS),  # noqa: B023
            415,
            "unsupported_media_type",
            ADVICE,
        )
    refused(lambda: decode(body, "image/png", ONE_IMAGE, GRAY, LIMITS), 400, "invalid_image", ADVICE)
    field, content_type = form(('name="file"', body))
    refused(lambda: decode(field, content_type, ONE_IMAGE, GRAY, LIMITS), 422, "unknown_field", ADVICE)
    refused(lambda: parse_options({"image_url": url}), 422, "invalid_parameter", ADVICE)


def test_numbers_are_no_urls() -> None:
    refused(
        lambda: decode_json({"inputs": [[1, 2, 3]], "url": 3}, VECTOR),
        422,
        "unknown_field",
        "known are image",
    )
