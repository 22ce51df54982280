import base64
from itertools import product

import numpy as np
import orjson
import pytest

from engine import TraceLevel
from service.codec import decode
from service.codec.formats.image import decode_base64
from service.config.model_config import ModelConfig
from tests.cases import check_each
from tests.service.codec.payloads import (
    GRAY,
    IMAGES,
    LIMITS,
    ONE_IMAGE,
    RAW,
    TWO,
    VECTOR,
    decode_json,
    picture,
    port,
    refused,
)


def nested(depth: int) -> list[object]:
    inner: list[object] = []
    for _ in range(depth - 1):
        inner = [inner]
    return inner


MATRIX = [[1, 2.5, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    "entry",
    [
        {"data": MATRIX},
        {"name": "0", "data": MATRIX},
        {"name": "pnnx_input_0", "data": MATRIX},
        {"data": MATRIX, "shape": [2, 3]},
        {"data": [1, 2.5, 3, 4, 5, 6], "shape": [2, 3]},
        {"data": [1, 2.5, 3, 4, 5, 6]},
        {"data": MATRIX, "dtype": "f32"},
        {"data": MATRIX, "dtype": "float32"},
        {"data": MATRIX, "dtype": "FP32"},
        {"data": MATRIX, "datatype": "FP64"},
        {"data": MATRIX, "dtype": "f16"},
        {"data": MATRIX, "dtype": "BF16"},
        {"data": MATRIX, "dtype": None, "shape": None, "name": None},
    ],
)
def test_tensor_in_every_spelling(entry: object) -> None:
    array = decode_json({"inputs": [entry]}).inputs["0"]
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, np.array(MATRIX, np.float32))


def test_two_inputs_by_name_in_any_order() -> None:
    body = {"inputs": [{"name": "b", "data": [7]}, {"name": "pnnx_input_0", "data": [1, 2]}]}
    inputs = decode_json(body, TWO).inputs
    assert list(inputs) == ["a", "b"]
    assert inputs["b"].dtype == np.int64
    assert inputs["b"].tolist() == [7]


def test_names_of_nan_and_infinities() -> None:
    body = {"inputs": [{"data": [["NaN", "Infinity", "-Infinity"]]}]}
    np.testing.assert_array_equal(decode_json(body).inputs["0"], [[np.nan, np.inf, -np.inf]])


def test_complex_pairs() -> None:
    body = {"inputs": [{"data": [[1, 2], [3, "NaN"]]}]}
    array = decode_json(body, port("c64")).inputs["0"]
    assert array.dtype == np.complex64
    assert array[0] == 1 + 2j
    assert np.isnan(array[1].imag)


def test_complex_pairs_flat_with_shape() -> None:
    entry = {"data": [[1, 2], [3, 4]], "shape": [1, 2], "dtype": "complex128"}
    array = decode_json({"inputs": [entry]}, port("c128", (None, None))).inputs["0"]
    np.testing.assert_array_equal(array, [[1 + 2j, 3 + 4j]])


def test_scalar() -> None:
    array = decode_json({"inputs": [{"data": 2}]}, port("i64", ())).inputs["0"]
    assert array.shape == ()
    assert array == 2


@pytest.mark.parametrize("data", [[True, False], [1, 0]])
def test_booleans(data: object) -> None:
    array = decode_json({"inputs": [{"data": data}]}, port("bool")).inputs["0"]
    assert array.dtype == np.bool_
    assert array.tolist() == [True, False]


def test_whole_floats_for_integers() -> None:
    assert decode_json({"inputs": [{"data": [1.0, 2]}]}, port("i32")).inputs["0"].tolist() == [1, 2]


def test_integer_of_another_width() -> None:
    body = {"inputs": [{"data": [1, 2], "dtype": "UINT64"}]}
    assert decode_json(body, port("u8")).inputs["0"].dtype == np.uint8


@pytest.mark.parametrize(
    ("data", "dtype"), [([True], np.bool_), ([1], np.int64), ([1, 0.5], np.float32), ([], np.float32)]
)
def test_dtype_of_an_input_that_declares_none(data: object, dtype: type) -> None:
    assert decode_json({"inputs": [{"data": data}]}, port(None, None)).inputs["0"].dtype == dtype


def test_empty_tensor() -> None:
    assert decode_json({"inputs": [{"data": [], "shape": [0, 3]}]}).inputs["0"].shape == (0, 3)
    assert decode_json({"inputs": [{"data": []}]}).inputs["0"].shape == (0, 3)
    assert decode_json({"inputs": [{"data": [[], []]}]}, port("f32", (2, 0))).inputs["0"].shape == (2, 0)


def test_parameters() -> None:
    parameters = {"trace": "stats", "capture": ["5", "6"], "top_k": 3}
    classifier = ModelConfig(task="classification")
    options = decode_json({"inputs": [{"data": MATRIX}], "parameters": parameters}, config=classifier).options
    assert options.trace is TraceLevel.STATISTICS
    assert options.capture == ("5", "6")
    assert options.task == {"top_k": 3}


@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,", "DATA:;BASE64,"])
def test_image(prefix: str) -> None:
    text = prefix + base64.b64encode(picture()).decode()
    np.testing.assert_array_equal(
        decode_json({"image": text}, ONE_IMAGE, GRAY).inputs["0"], np.ones((1, 1, 4, 4))
    )


def test_image_with_line_ends() -> None:
    text = base64.encodebytes(picture()).decode()
    assert decode_json({"image": text}, ONE_IMAGE, GRAY).inputs["0"].all()


def test_images_are_a_batch() -> None:
    texts = [base64.b64encode(picture(level)).decode() for level in (0, 255)]
    array = decode_json({"images": texts}, IMAGES, GRAY).inputs["0"]
    assert array[:, 0, 0, 0].tolist() == [0, 1]


@pytest.mark.parametrize("charset", ["utf-16", "utf-16le", "iso-8859-1", "UTF-8", '"utf-8"', "us-ascii"])
def test_charset(charset: str) -> None:
    body = orjson.dumps({"inputs": [{"data": MATRIX}]}).decode().encode(charset.strip('"'))
    content_type = f"application/json; charset={charset}"
    assert decode(body, content_type, VECTOR, RAW, LIMITS).inputs["0"].shape == (2, 3)


def test_byte_order_mark() -> None:
    body = b"\xef\xbb\xbf" + orjson.dumps({"inputs": [{"data": MATRIX}]})
    assert decode(body, "application/json", VECTOR, RAW, LIMITS).inputs["0"].shape == (2, 3)
    assert decode(body, None, VECTOR, RAW, LIMITS).inputs["0"].shape == (2, 3)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"{", "not JSON"),
        (b'{"inputs": [{"data": [[1, 2, NaN]]}]}', "as strings"),
        (b"NaN", "as strings"),
        (b'{"inputs": [{"data": [-Infinity]}]}', "as strings"),
        (b"[1]", "not a JSON object"),
        (b"[" * 50_000, "not JSON"),
        (b"{}", "none of image, images, inputs"),
        (b'{"image": "", "inputs": []}', "both image and inputs"),
        (b'{"inputs": 3}', "inputs is not a list"),
        (b'{"inputs": [1]}', "inputs[0] is not an object"),
        (b'{"inputs": [{"name": 3, "data": []}]}', "name is not a string"),
        (b'{"inputs": [], "parameters": []}', "parameters is not an object"),
        (b'{"image": 3}', "not a string"),
        (b'{"images": ["", 3]}', "not a list of strings"),
        (b'{"images": ""}', "not a list of strings"),
        (b'{"a": "\xff"}', "not JSON"),
    ],
)
def test_invalid_json(body: bytes, text: str) -> None:
    refused(lambda: decode_json(body), 400, "invalid_json", text)


def test_invalid_json_of_another_charset() -> None:
    body = b"{\xff"
    refused(
        lambda: decode(body, "application/json; charset=ascii", VECTOR, RAW, LIMITS),
        400,
        "invalid_json",
        "byte 1",
    )


def test_unknown_charset() -> None:
    refused(
        lambda: decode(b"{}", "application/json; charset=rot13", VECTOR, RAW, LIMITS),
        415,
        "unsupported_charset",
    )


def test_invalid_tensor() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({}, "no data"),
        ({"data": [[1, 2, 3]], "shape": [3]}, "shape is [3], but data is nested [1, 3]"),
        ({"data": [1, 2], "shape": [1, 3]}, "3 elements in one list"),
        ({"data": [[1, 2], [3]]}, "depth 2"),
        ({"data": [[1, 2], 3]}, "depth 2"),
        ({"data": [1, None, 3]}, "null"),
        ({"data": [1, True, 3]}, "a boolean"),
        ({"data": [1, "2", 3]}, "a string that is not NaN"),
        ({"data": [1, {}, 3]}, "an object"),
        ({"data": "abc"}, "a string"),
        ({"data": [1, 2, 3], "shape": "x"}, "shape is 'x'"),
        ({"data": [1, 2, 3], "shape": [-3]}, "shape is [-3]"),
        ({"data": [1, 2, 3], "shape": [True, 3]}, "shape is"),
        ({"data": [1, 2, 3], "shape": [3.0]}, "shape is [3.0]"),
        ({"data": [1, 2, 3], "shape": [1] * 33}, "at most 32"),
        ({"data": nested(34)}, "nested more than 32 deep"),
        ({"data": [1, 2, 3], "dtype": "f99"}, "dtype is 'f99'"),
        ({"data": [1, 2, 3], "dtype": 32}, "dtype is '32'"),
        ({"data": [1, 2, 3], "dtype": "c64"}, "pairs [re, im]"),
        ({"data": [1.5], "dtype": "i64"}, "a fraction"),
        ({"data": ["NaN"], "dtype": "i64"}, "a string"),
        ({"data": [2], "dtype": "bool"}, "other than 0 and 1"),
        ({"data": [0.5], "dtype": "bool"}, "a number; expected booleans"),
    ]

    def check(case: tuple[dict[str, object], str]) -> None:
        entry, text = case
        refused(lambda: decode_json({"inputs": [entry]}), 400, "invalid_tensor", text)

    check_each(cases, check)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [
        ("u8", 256),
        ("u8", -1),
        ("i8", 1e10),
        ("i32", 1 << 31),
        ("i64", 1 << 63),
        ("i64", 2.0**63),
        ("f16", 70000),
        ("f32", 1e39),
        ("f32", -1e39),
    ],
)
def test_out_of_range(dtype: str, number: float) -> None:
    refused(lambda: decode_json({"inputs": [{"data": [number]}]}, port(dtype)), 422, "out_of_range")


def test_out_of_range_for_the_named_dtype() -> None:
    refused(
        lambda: decode_json({"inputs": [{"data": [-1], "dtype": "UINT64"}]}, port("i64")), 422, "out_of_range"
    )


@pytest.mark.parametrize(
    ("body", "ports", "code"),
    [
        ({"inputs": [{"name": "x", "data": []}]}, VECTOR, "unknown_input"),
        ({"inputs": [{"data": []}]}, TWO, "missing_input"),
        ({"inputs": []}, VECTOR, "missing_input"),
        ({"inputs": [{"name": "a", "data": [1, 2]}]}, TWO, "missing_input"),
        ({"inputs": [{"data": [[1, 2, 3]]}] * 2}, VECTOR, "duplicate_input"),
        ({"inputs": [{"data": [[[1, 2, 3]]]}]}, VECTOR, "wrong_rank"),
        ({"inputs": [{"data": [1, 2, 3], "shape": [3]}]}, VECTOR, "wrong_rank"),
        ({"inputs": [{"data": [1, 2, 3, 4]}]}, VECTOR, "wrong_shape"),
        ({"inputs": [{"data": [1, 2]}]}, port("f32", (1, 3)), "wrong_shape"),
        ({"inputs": [{"data": [1, 2]}]}, port("f32", (None, None)), "wrong_rank"),
        ({"inputs": [{"data": [[1, 2, 3]], "dtype": "i64"}]}, VECTOR, "wrong_dtype"),
        ({"inputs": [{"data": [[1, 2, 3]], "extra": 1}]}, VECTOR, "unknown_field"),
        ({"inputs": [], "extra": 1}, VECTOR, "unknown_field"),
        ({"inputs": [], "parameters": {"top_k": 0}}, VECTOR, "invalid_parameter"),
        ({"images": []}, VECTOR, "not_an_image_model"),
    ],
)
def test_does_not_fit_the_model(body: object, ports: tuple[()], code: str) -> None:
    refused(lambda: decode_json(body, ports), 422, code)


@pytest.mark.parametrize(
    "entry",
    [
        {"data": [1], "shape": [20_001]},
        {"data": [1], "shape": [1 << 61, 1 << 61]},
        {"data": [], "shape": [0, 1 << 61, 1 << 61]},
        {"data": [0] * 20_001},
        {"data": [[0] * 10_001] * 2},
        {"data": [[0] * 1000] * 50},
    ],
)
def test_too_many_elements(entry: object) -> None:
    refused(lambda: decode_json({"inputs": [entry]}), 413, "tensor_too_large", "maximum is 20000")


@pytest.mark.parametrize(
    "text", ["!!!!", "abc", "iVBORw0KGgo", "data:image/png,xx", "data:;base64", "\u00e4bcd"]
)
def test_invalid_base64(text: str) -> None:
    refused(lambda: decode_json({"image": text}, ONE_IMAGE, GRAY), 400, "invalid_base64")


def test_base64_in_pieces_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "AA==", "AAA=", "AAAA", "AA==\n\n  \n", "A A\nA\nA BBBBCCCC", "QUJDREVGR0hJSktM"]

    def check(case: tuple[int, str]) -> None:
        piece, text = case
        monkeypatch.setattr("service.codec.formats.image._PIECE", piece)
        assert decode_base64(text, "x") == base64.b64decode(text)

    check_each(product([1, 2, 3, 4, 5, 7, 100], texts), check)


def test_invalid_base64_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        "AA==BBBB",
        "AA==BBBBCCCCDDDD",
        "AAA",
        "AAAAA",
        "=AAA",
        "AA=A",
        "AA=",
        "AAAABB=CDDDD",
        "AA==!",
    ]

    def check(case: tuple[int, str]) -> None:
        piece, text = case
        monkeypatch.setattr("service.codec.formats.image._PIECE", piece)
        refused(lambda: decode_base64(text, "x"), 400, "invalid_base64")

    check_each(product([1, 2, 3, 4, 5, 7, 8, 100], texts), check)


def test_base64_of_no_image() -> None:
    refused(lambda: decode_json({"image": "AAAA"}, ONE_IMAGE, GRAY), 400, "invalid_image")
    refused(lambda: decode_json({"image": ""}, ONE_IMAGE, GRAY), 400, "invalid_image")


def test_wrong_number_of_images() -> None:
    text = base64.b64encode(picture()).decode()
    refused(
        lambda: decode_json({"images": [text] * 2}, ONE_IMAGE, GRAY), 422, "wrong_image_count", "batch size"
    )
    refused(lambda: decode_json({"images": []}, IMAGES, GRAY), 422, "wrong_image_count", "at least one")
