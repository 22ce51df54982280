"""Whatever bytes come, the codec answers with arrays or a ServiceError; what it writes, it reads."""

from io import BytesIO
from typing import Any

import numpy as np
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from engine import Port, RunResult
from engine.dtypes import PNNX_STORAGE, Array, pnnx_name
from service.codec import (
    JSON_TYPE,
    NPZ_TYPE,
    build_response,
    decode,
    encode,
    negotiate,
)
from service.codec.formats import media_types
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.errors import ServiceError
from tests.service.codec.payloads import encoded, form, npy, npz

LIMITS = Limits(body_bytes=1 << 16, image_pixels=4096, tensor_elements=4096)
IMAGES = ModelConfig.model_validate({"image": {"size": [4, 4], "colour": "rgb"}})
PORTS = (
    (Port("pnnx_input_0", "0", (None, 3, 4, 4), "f32"),),
    (Port("pnnx_input_0", "0", (None, None), "i64"),),
    (Port("pnnx_input_0", "a", None, None), Port("pnnx_input_1", "b", (2,), "c64")),
)
CONTENT_TYPES = (
    *media_types(),
    "multipart/form-data; boundary=XX",
    "text/csv; header=present",
    "application/json; charset=x",
)
DTYPES = [dtype for code, dtype in PNNX_STORAGE.items() if code not in ("c32", "bf16")]
EXAMPLES = settings(max_examples=100)

pixels = np.arange(75, dtype=np.uint8).reshape(5, 5, 3) * 3
exif = Image.Exif()
exif[0x0112] = 6
SEEDS = (
    *(encoded(Image.fromarray(pixels), kind, exif=exif) for kind in ("PNG", "JPEG", "WEBP")),
    encoded(Image.fromarray(pixels), "BMP"),
    encoded(Image.fromarray(pixels).convert("P"), "PNG", transparency=3),
    npy(np.ones((1, 3, 4, 4), np.float32)),
    npz(a=np.ones((2, 2), np.float64), b=np.ones(2, np.complex64), compressed=True),
    b'{"inputs": [{"name": "0", "shape": [1, 2], "dtype": "i64", "data": [[1, 2]]}], "parameters": {"top_k": 1}}',
    b"a,b\n1,2\n3,4\n",
    form(('name="file"; filename="x"', encoded(Image.fromarray(pixels))), ('name="top_k"', b"1"))[0],
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A sound body with some bytes changed, cut out or put in."""
    body = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(body)))
        end = min(len(body), start + draw(st.integers(0, 4)))
        body[start:end] = draw(st.binary(max_size=4))
    return bytes(body)


def check_response(
    body: bytes, content_type: str | None, ports: tuple[Port, ...], config: ModelConfig
) -> None:
    decoded = refused = None
    try:
        decoded = decode(body, content_type, ports, config, LIMITS)
    except ServiceError as error:
        refused = error
    if decoded is None:
        assert refused is not None
        assert refused.status in (400, 413, 415, 422)
        assert orjson.dumps(refused.body())
        return
    assert set(decoded.inputs) == {port.operand for port in ports}
    for port in ports:
        array = decoded.inputs[port.operand]
        assert array.size <= LIMITS.tensor_elements
        assert port.shape is None or array.ndim == len(port.shape)
        assert port.dtype is None or pnnx_name(array.dtype) == port.dtype


@EXAMPLES
@given(
    st.binary(max_size=200),
    st.none() | st.sampled_from(CONTENT_TYPES) | st.text(max_size=40),
    st.sampled_from(PORTS),
    st.sampled_from([IMAGES, ModelConfig()]),
)
def test_arbitrary_bytes(
    body: bytes, content_type: str | None, ports: tuple[Port, ...], config: ModelConfig
) -> None:
    check_response(body, content_type, ports, config)


@settings(EXAMPLES, max_examples=300)
@given(damaged(), st.none() | st.sampled_from(CONTENT_TYPES), st.sampled_from(PORTS))
def test_damaged_bodies(body: bytes, content_type: str | None, ports: tuple[Port, ...]) -> None:
    check_response(body, content_type, ports, IMAGES)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["NaN", "Infinity", "f32", "0", "a", "INT64", "x"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["name", "shape", "dtype", "data", "inputs", "images", "parameters", "top_k", "trace"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@EXAMPLES
@given(
    st.fixed_dictionaries({"inputs": st.lists(json_values, max_size=3)})
    | st.fixed_dictionaries({"inputs": st.lists(st.fixed_dictionaries({"data": json_values}), max_size=2)})
    | st.fixed_dictionaries({"image": st.text(max_size=20), "parameters": json_values})
    | json_values,
    st.sampled_from(PORTS),
)
def test_arbitrary_json(document: Any, ports: tuple[Port, ...]) -> None:
    check_response(orjson.dumps(document), "application/json", ports, IMAGES)


@EXAMPLES
@given(st.text('0123456789.,-+eEnaif_"\n\r x', max_size=60), st.sampled_from(PORTS))
def test_arbitrary_tables(text: str, ports: tuple[Port, ...]) -> None:
    check_response(text.encode(), "text/csv", ports, ModelConfig())


@EXAMPLES
@given(st.text(max_size=60))
def test_arbitrary_accept(accept: str) -> None:
    status = None
    try:
        chosen = negotiate(accept)
    except ServiceError as error:
        chosen, status = "", error.status
    assert chosen in (JSON_TYPE, NPZ_TYPE) or status == 406


arrays = st.sampled_from(DTYPES).flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)


def answered(array: Array, media_type: str) -> bytes:
    port = Port("out0", "0", None, None)
    response = build_response("m", "1", "r", [port], RunResult([array]), None, {})
    return b"".join(encode(response, media_type, 0))


@EXAMPLES
@given(arrays, st.booleans())
def test_json_round_trip(array: Array, flat: bool) -> None:
    output = orjson.loads(answered(array, JSON_TYPE))["outputs"][0]
    if flat and array.ndim > 1 and array.dtype.kind != "c":
        output["data"] = orjson.loads(answered(array.ravel(), JSON_TYPE))["outputs"][0]["data"]
    ports = (Port("in0", "0", (None,) * array.ndim, pnnx_name(array.dtype)),)
    read = decode(
        orjson.dumps({"inputs": [output]}), "application/json", ports, ModelConfig(), LIMITS
    ).inputs["0"]
    np.testing.assert_array_equal(read, array, strict=True)


@EXAMPLES
@given(arrays)
def test_binary_round_trips(array: Array) -> None:
    ports = (Port("in0", "0", None, None),)
    with np.load(BytesIO(answered(array, NPZ_TYPE))) as archive:
        np.testing.assert_array_equal(archive["0"], array, strict=True)
    for body in (npy(array), npz(array), npz(array, compressed=True)):
        read = decode(body, None, ports, ModelConfig(), LIMITS).inputs["0"]
        np.testing.assert_array_equal(read, array, strict=True)


@EXAMPLES
@given(
    st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK", "YCbCr"]),
    st.sampled_from(["PNG", "JPEG", "WEBP", "BMP"]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from(["gray", "rgb", "bgr"]),
    st.sampled_from(["stretch", "fit", "crop"]),
)
def test_images_of_all_modes(mode: str, kind: str, width: int, height: int, colour: str, resize: str) -> None:
    try:
        body = encoded(Image.new(mode, (width, height)), kind)
    except OSError:
        return  # the format has no such mode
    config = ModelConfig.model_validate({"image": {"size": [3, 5], "colour": colour, "resize": resize}})
    channels = 1 if colour == "gray" else 3
    ports = (Port("in0", "0", (1, channels, 3, 5), "f32"),)
    array = decode(body, None, ports, config, LIMITS).inputs["0"]
    assert array.shape == (1, channels, 3, 5)
    assert ((array >= 0) & (array <= 1)).all()
