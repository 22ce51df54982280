"""Ports and bodies that the codec's tests share."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import orjson
import pytest
from PIL import Image

from engine import Array, Port
from service.codec import Decoded, decode
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError

LIMITS = Limits(body_bytes=1 << 20, image_pixels=100_000, tensor_elements=20_000)
RAW = ModelConfig()
GRAY = ModelConfig.model_validate({"image": {"size": [4, 4], "colour": "gray", "resample": "nearest"}})
VECTOR = (Port("pnnx_input_0", "0", (None, 3), "f32"),)
IMAGES = (Port("pnnx_input_0", "0", (None, 1, 4, 4), "f32"),)
ONE_IMAGE = (Port("pnnx_input_0", "0", (1, 1, 4, 4), "f32"),)
TWO = (Port("pnnx_input_0", "a", (2,), "f32"), Port("pnnx_input_1", "b", (None,), "i64"))
TWO_IMAGES = (
    Port("pnnx_input_0", "left", (1, 1, 4, 4), "f32"),
    Port("pnnx_input_1", "right", (1, 1, 4, 4), "f32"),
)


def port(dtype: str | None, shape: tuple[int | None, ...] | None = (None,)) -> tuple[Port, ...]:
    return (Port("pnnx_input_0", "0", shape, dtype),)


def picture(level: int = 255, side: int = 4, form: str = "PNG") -> bytes:
    return encoded(Image.new("L", (side, side), level), form)


def encoded(image: Image.Image, form: str = "PNG", **options: Any) -> bytes:
    target = BytesIO()
    image.save(target, form, **options)
    return target.getvalue()


def npy(array: Array) -> bytes:
    target = BytesIO()
    np.save(target, array)
    return target.getvalue()


def npz(*args: Array, compressed: bool = False, **arrays: Array) -> bytes:
    target = BytesIO()
    save: Any = np.savez_compressed if compressed else np.savez
    save(target, *args, **arrays)
    return target.getvalue()


def form(*parts: tuple[str, bytes]) -> tuple[bytes, str]:
    """Return a form and its Content-Type; each part is its Content-Disposition's parameters and its bytes."""
    chunks = [
        b"--XX\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (head.encode(), data)
        for head, data in parts
    ]
    return b"".join(chunks) + b"--XX--\r\n", "multipart/form-data; boundary=XX"


def decode_json(document: Any, ports: tuple[Port, ...] = VECTOR, config: ModelConfig = RAW) -> Decoded:
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    return decode(body, "application/json", ports, config, LIMITS)


def refused(call: Callable[[], object], status: int, code: str, text: str = "") -> ServiceError:
    """Check that a call raises this error, with this in its message."""
    with pytest.raises(ServiceError) as caught:
        call()
    assert (caught.value.status, caught.value.code) == (status, code), caught.value.message
    assert text in caught.value.message
    orjson.dumps(caught.value.body())
    return caught.value
