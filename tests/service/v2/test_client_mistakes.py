"""What the real client makes of every mistake: its own exception, with the server's status and message."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton

from engine import Array
from tests.service.v2.calls import PAIR, SAMPLE, output, pair, refusal, tensor


@pytest.fixture
def client(address: str) -> Iterator[Any]:
    created = triton.InferenceServerClient(address, concurrency=2)
    yield created
    created.close()


@pytest.mark.parametrize(
    ("name", "array", "words"),
    [
        ("x", np.ones((1, 2), np.float32), ["no input 'x'", "'in'"]),
        ("in", np.ones((1, 3), np.float32), ["[1, 3]", "[-1, 2]"]),
        ("in", np.ones(2, np.float32), ["[2]", "[-1, 2]"]),
        ("in", np.ones((1, 2, 1), np.float32), ["[1, 2, 1]", "[-1, 2]"]),
        ("in", np.ones((1, 2), np.float64), ["FP64", "FP32"]),
        ("in", np.ones((1, 2), np.int32), ["INT32", "FP32"]),
        ("in", np.array([b"x"], object), ["BYTES"]),
    ],
)
@pytest.mark.parametrize("binary", [True, False])
def test_inputs_that_do_not_fit(client: Any, name: str, array: Array, words: list[str], binary: bool) -> None:
    status, message = refusal(client, "same_f32", [tensor(name, array, binary)])
    assert status == "400"
    for word in words:
        assert word in message


def test_inputs_that_are_missing_or_given_twice(client: Any) -> None:
    assert "missing" in refusal(client, "pair", [])[1]
    assert "right is missing" in refusal(client, "pair", pair()[:1])[1]
    assert "twice" in refusal(client, "pair", [*pair(), pair()[0]])[1]
    assert "twice" in refusal(client, "pair", [*pair(), tensor("left", PAIR[0])])[1]


@pytest.mark.parametrize("name", ["x", "output_0", "a"])
def test_outputs_that_do_not_exist(client: Any, name: str) -> None:
    status, message = refusal(client, "pair", pair(), outputs=[output(name)])
    assert (status, repr(name) in message) == ("400", True)


def test_outputs_that_are_asked_for_twice(client: Any) -> None:
    assert "twice" in refusal(client, "pair", pair(), outputs=[output("s"), output("s")])[1]


@pytest.mark.parametrize("change", [-4, -1, 1, 4])
def test_sizes_that_do_not_fit(client: Any, change: int) -> None:
    broken = tensor("in", np.ones((1, 2), np.float32))
    broken._raw_data = bytes(8 + change)
    status, message = refusal(client, "same_f32", [broken])
    assert (status, f"{8 + change} bytes" in message) == ("400", True)
    broken._parameters["binary_data_size"] = 8 + change
    status, message = refusal(client, "same_f32", [broken])
    assert (status, f"{8 + change} bytes" in message) == ("400", True)


@pytest.mark.parametrize("shape", [[1 << 62, 1 << 62], [1 << 40, 2], [-1, 2], [1.5, 2], "2", None])
def test_shapes_that_make_no_sense(client: Any, shape: Any) -> None:
    broken = tensor("in", np.ones((1, 2), np.float32))
    broken.set_shape(shape)
    assert refusal(client, "same_f32", [broken])[0] == "400"


@pytest.mark.parametrize(
    "data", [b"", b"x", b"\x01\0\0\0", b"\x09\0\0\0x", b"\xff\xff\xff\xffx", b"\x01\0\0\0xy"]
)
def test_strings_that_are_not_whole(client: Any, data: bytes) -> None:
    broken = tensor("0", np.array([b"x"], object))
    broken._raw_data = data
    broken._parameters["binary_data_size"] = len(data)
    status, message = refusal(client, "digits", [broken])
    assert (status, "bytes" in message) == ("400", True)


def test_images_that_are_none(client: Any) -> None:
    assert refusal(client, "digits", [tensor("0", np.array([b"x"], object))])[0] == "400"
    assert refusal(client, "digits", [tensor("0", np.array(["?"], object), binary=False)])[0] == "400"
    assert refusal(client, "digits", [tensor("0", np.array([], object))])[0] == "400"
    two = tensor("0", np.array([SAMPLE.read_bytes()] * 2, object))
    assert "2 images" in refusal(client, "digit", [two])[1]


def test_shared_memory_is_refused(client: Any) -> None:
    shared = tensor("in", np.ones((1, 2), np.float32)).set_shared_memory("region", 8)
    status, message = refusal(client, "same_f32", [shared])
    assert (status, "shared memory" in message) == ("400", True)


def test_models_that_do_not_exist_or_fail(client: Any) -> None:
    assert refusal(client, "none", pair())[0] == "404"
    assert refusal(client, "pair", pair(), model_version="9")[0] == "404"
    assert refusal(client, "fault", [tensor("0", np.ones(1, np.float32))])[0] == "500"


def test_body_that_is_too_large(client: Any) -> None:
    array = np.zeros((30_000, 2), np.float32)
    assert refusal(client, "same_f32", [tensor("in", array)])[0] == "413"
    for coding in ("gzip", "deflate"):
        assert (
            refusal(client, "same_f32", [tensor("in", array)], request_compression_algorithm=coding)[0]
            == "413"
        )
