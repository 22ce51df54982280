import base64
import json
from itertools import product

import numpy as np
import pytest
from PIL import Image

from engine import TraceLevel
from service.codec import decode
from service.codec.multipart import MAX_PARTS
from service.config.limits import Limits
from tests.cases import check_each
from tests.service.codec.payloads import (
    GRAY,
    IMAGES,
    LIMITS,
    ONE_IMAGE,
    RAW,
    TWO,
    TWO_IMAGES,
    encoded,
    form,
    picture,
    port,
    refused,
)

FILE = 'name="file"; filename="7.png"\r\nContent-Type: image/png'


def test_raw_image() -> None:
    headers = ["right", None, "application/octet-stream", "image/png", "image/x-other"]

    def check(case: tuple[str, str | None]) -> None:
        kind, header = case
        content_type = f"image/{kind.lower()}" if header == "right" else header
        array = decode(picture(255, form=kind), content_type, ONE_IMAGE, GRAY, LIMITS).inputs["0"]
        np.testing.assert_array_equal(array, np.ones((1, 1, 4, 4), np.float32), strict=True)

    check_each(product(["PNG", "JPEG", "WEBP", "BMP"], headers), check)


@pytest.mark.parametrize("field", ["file", "image", "anything", ""])
def test_form_with_a_file(field: str) -> None:
    body, content_type = form((f'name="{field}"; filename="x"', picture()))
    assert decode(body, content_type, ONE_IMAGE, GRAY, LIMITS).inputs["0"].all()


def test_form_with_an_image_that_has_no_file_name() -> None:
    body, content_type = form(('name="file"', picture()))
    assert decode(body, content_type, ONE_IMAGE, GRAY, LIMITS).inputs["0"].all()


def test_form_with_several_files_is_a_batch() -> None:
    body, content_type = form((FILE, picture(0)), (FILE, picture(51)), (FILE, picture(255)))
    array = decode(body, content_type, IMAGES, GRAY, LIMITS).inputs["0"]
    np.testing.assert_allclose(array[:, 0, 0, 0], [0, 0.2, 1], rtol=1e-6)
    refused(lambda: decode(body, content_type, ONE_IMAGE, GRAY, LIMITS), 422, "wrong_image_count", "3 images")


def test_form_with_a_file_for_each_input() -> None:
    body, content_type = form(
        ('name="right"; filename="b"', picture(255)), ('name="pnnx_input_0"; filename="a"', picture(0))
    )
    inputs = decode(body, content_type, TWO_IMAGES, GRAY, LIMITS).inputs
    assert list(inputs) == ["left", "right"]
    assert not inputs["left"].any()
    assert inputs["right"].all()


def test_form_for_two_inputs_names_them() -> None:
    body, content_type = form((FILE, picture()))
    refused(lambda: decode(body, content_type, TWO_IMAGES, GRAY, LIMITS), 422, "unknown_input", "'file'")
    body, content_type = form(('name="left"; filename="a"', picture(0)))
    refused(
        lambda: decode(body, content_type, TWO_IMAGES, GRAY, LIMITS), 422, "missing_input", "pnnx_input_1"
    )
    refused(
        lambda: decode(picture(), "image/png", TWO_IMAGES, GRAY, LIMITS), 422, "missing_input", "one image"
    )


def test_form_with_options() -> None:
    body, content_type = form(
        (FILE, picture()), ('name="top_k"', b"3"), ('name="trace"', b"stats"), ('name="capture"', b"a,b")
    )
    config = GRAY.model_copy(update={"task": "classification"})
    options = decode(body, content_type, ONE_IMAGE, config, LIMITS).options
    assert options.task == {"top_k": 3}
    assert options.trace is TraceLevel.STATISTICS
    assert options.capture == ("a", "b")


def test_boundary_in_quotes() -> None:
    body, _ = form((FILE, picture()))
    content_type = 'Multipart/Form-Data; Boundary="XX"; charset=utf-8'
    assert decode(body, content_type, ONE_IMAGE, GRAY, LIMITS).inputs["0"].all()


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        (b"x", "multipart/form-data", "no boundary"),
        (b"x", "multipart/form-data; boundary=", "no boundary"),
        (b"x", "multipart/form-data; boundary=" + "b" * 300, "cannot be read"),
        (b"hello", "multipart/form-data; boundary=XX", "cannot be read"),
        (form((FILE, picture()))[0][:-8], "multipart/form-data; boundary=XX", "before its last boundary"),
        (form(('name="top_k"', b"3"))[0], "multipart/form-data; boundary=XX", "no file"),
        (form((FILE, picture()), ('name="top_k"', b"\xff"))[0], "multipart/form-data; boundary=XX", "utf-8"),
        (
            form(*[(FILE, b"")] * (MAX_PARTS + 1))[0],
            "multipart/form-data; boundary=XX",
            "more than 256 parts",
        ),
    ],
)
def test_invalid_multipart(
    body: bytes, content_type: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    refused(lambda: decode(body, content_type, ONE_IMAGE, GRAY, LIMITS), 400, "invalid_multipart", text)
    assert not caplog.records


def test_form_with_other_fields() -> None:
    body, content_type = form((FILE, picture()), ('name="x"', b"3"))
    refused(lambda: decode(body, content_type, ONE_IMAGE, GRAY, LIMITS), 422, "unknown_field", "'x'")
    body, content_type = form((FILE, picture()), ('name="top_k"', b"many"))
    refused(lambda: decode(body, content_type, ONE_IMAGE, GRAY, LIMITS), 422, "invalid_parameter", "'many'")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP"])
def test_truncated_image(kind: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64), np.uint8)
    body = encoded(Image.fromarray(noise), kind)
    for kept in (len(body) // 2, len(body) - 40, 30):
        refused(lambda: decode(body[:kept], f"image/{kind}", ONE_IMAGE, GRAY, LIMITS), 400, "invalid_image")  # noqa: B023


def test_bytes_that_are_no_image() -> None:
    refused(lambda: decode(b"hello", "image/png", ONE_IMAGE, GRAY, LIMITS), 400, "invalid_image", "PNG, JPEG")
    body, content_type = form((FILE, b"hello"))
    refused(lambda: decode(body, content_type, ONE_IMAGE, GRAY, LIMITS), 400, "invalid_image")


@pytest.mark.parametrize("kind", ["GIF", "TIFF", "AVIF"])
def test_other_formats_are_refused_however_they_are_sent(kind: str) -> None:
    body = picture(side=16, form=kind)
    field, form_type = form(('name="image"', body))
    file, file_type = form((FILE, body))
    text = json.dumps({"image": base64.b64encode(body).decode()}).encode()
    for sent, content_type in (
        *((body, name) for name in (f"image/{kind.lower()}", "image/png", "application/octet-stream", None)),
        (field, form_type),
        (file, file_type),
        (text, "application/json"),
    ):
        error = refused(
            lambda: decode(sent, content_type, ONE_IMAGE, GRAY, LIMITS),  # noqa: B023
            415,
            "unsupported_image_format",
            f"is {kind}, which is not supported; expected PNG, JPEG, WEBP, BMP",
        )
        assert error.details == {"format": kind, "accepted": ["PNG", "JPEG", "WEBP", "BMP"]}


@pytest.mark.parametrize("kind", ["PPM", "ICO"])
def test_formats_that_are_not_known(kind: str) -> None:
    body = picture(side=16, form=kind)
    error = refused(
        lambda: decode(body, f"image/{kind}", ONE_IMAGE, GRAY, LIMITS), 415, "unsupported_media_type"
    )
    assert "image/webp" in error.details["accepted"]
    refused(lambda: decode(body, "image/png", ONE_IMAGE, GRAY, LIMITS), 400, "invalid_image")


def test_pixels_are_counted_before_decoding() -> None:
    limits = Limits(image_pixels=150)
    assert decode(picture(side=12), None, ONE_IMAGE, GRAY, limits).inputs
    header_only = picture(side=13)[:60]
    error = refused(
        lambda: decode(header_only, None, ONE_IMAGE, GRAY, limits), 413, "image_too_large", "169 pixels"
    )
    assert error.details == {"sizes": [[13, 13]], "limit": 150}
    body, content_type = form((FILE, picture(side=9)), (FILE, picture(side=9)))
    refused(lambda: decode(body, content_type, IMAGES, GRAY, limits), 413, "image_too_large", "162 pixels")


def test_pixel_bomb_without_a_warning() -> None:
    body = bytearray(picture())
    body[16:24] = (60_000).to_bytes(4, "big") * 2
    refused(lambda: decode(bytes(body), None, ONE_IMAGE, GRAY, LIMITS), 413, "image_too_large", "3600000000")
    huge = encoded(Image.new("1", (20_000, 20_000)))
    refused(lambda: decode(huge, None, ONE_IMAGE, GRAY, LIMITS), 413, "image_too_large", "400000000")


def test_elements_are_counted_before_decoding() -> None:
    body, content_type = form((FILE, b"no image"), (FILE, b"no image"))
    limits = Limits(tensor_elements=31)
    refused(lambda: decode(body, content_type, IMAGES, GRAY, limits), 413, "tensor_too_large", "32 elements")


def test_models_that_take_no_images() -> None:
    refused(lambda: decode(picture(), None, ONE_IMAGE, RAW, LIMITS), 422, "not_an_image_model", "[image]")
    refused(lambda: decode(picture(), None, port("f32"), GRAY, LIMITS), 422, "not_an_image_model", "height")
    body, content_type = form(('name="a"; filename="x"', picture()))
    refused(lambda: decode(body, content_type, TWO, GRAY, LIMITS), 422, "not_an_image_model")
