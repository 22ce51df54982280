import zipfile
import zlib
from io import BytesIO
from itertools import product

import numpy as np
import pytest

from service.codec import decode
from service.codec.npz import MAX_ENTRIES, read_npz
from service.config.limits import Limits
from service.errors import ServiceError
from tests.cases import check_each
from tests.service.codec.payloads import LIMITS, RAW, TWO, VECTOR, npy, npz, refused

A = np.array([1, 2], np.float32)
B = np.array([3], np.int64)


def archive(*entries: tuple[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    target = BytesIO()
    with zipfile.ZipFile(target, "w", method) as file:
        for name, data in entries:
            file.writestr(name, data)
    return target.getvalue()


def test_by_name_or_by_number() -> None:
    bodies = {
        "operand names": npz(a=A, b=B),
        "other order": npz(b=B, a=A),
        "operator names": npz(pnnx_input_0=A, pnnx_input_1=B),
        "numpy's own names": npz(A, B),
        "numbers behind a line, other order": npz(in_1=B, in_0=A),
        "numbers": npz(in0=A, in1=B),
        "compressed": npz(a=A, b=B, compressed=True),
    }

    def check(case: tuple[str, str | None]) -> None:
        name, content_type = case
        inputs = decode(bodies[name], content_type, TWO, RAW, LIMITS).inputs
        assert list(inputs) == ["a", "b"]
        np.testing.assert_array_equal(inputs["a"], A, strict=True)
        np.testing.assert_array_equal(inputs["b"], B, strict=True)

    check_each(product(bodies, ["application/x-npz", "application/zip", None]), check)


def test_operand_names_that_are_numbers_are_names() -> None:
    inputs = decode(archive(("0.npy", npy(np.ones((1, 3))))), None, VECTOR, RAW, LIMITS).inputs
    assert inputs["0"].shape == (1, 3)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (npz(a=A), "missing_input"),
        (npz(a=A, c=B), "unknown_input"),
        (npz(A, B, B), "unknown_input"),
        (npz(x_0=A, y_1=B), "unknown_input"),
        (npz(x_1=A, x_2=B), "unknown_input"),
        (npz(a=A, pnnx_input_0=A, b=B), "duplicate_input"),
        (npz(a=B, b=B), "wrong_dtype"),
        (archive(), "missing_input"),
    ],
)
def test_does_not_fit_the_model(body: bytes, code: str) -> None:
    refused(lambda: decode(body, "application/x-npz", TWO, RAW, LIMITS), 422, code)


def encrypted() -> bytes:
    body = bytearray(npz(a=A))
    body[6] |= 1
    body[body.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(body)


def duplicated() -> bytes:
    body = archive(("a.npy", npy(A)), ("b.npy", npy(B)))
    return body.replace(b"b.npy", b"a.npy")


@pytest.mark.parametrize(
    ("body", "code", "text"),
    [
        (b"PK\x03\x04 nonsense", "invalid_npz", "not a zip file"),
        (npz(a=A)[:-30], "invalid_npz", "cannot be unpacked"),
        (npz(a=A).replace(A.tobytes(), b"\0" * 8), "invalid_npz", "CRC"),
        (archive(("a.npy", npy(A)), method=zipfile.ZIP_LZMA), "invalid_npz", "method 14"),
        (encrypted(), "invalid_npz", "encrypted"),
        (duplicated(), "invalid_npz", "two entries 'a'"),
        (archive(("a.npy", npy(A)[:-1])), "invalid_npz", "its header asks for"),
        (archive(("a.npy", npy(A) + b"x")), "invalid_npz", "its header asks for"),
        (archive(("a.npy", b"hello")), "invalid_npy", "'a.npy' begins with"),
        (npz(a=np.array([None])), "invalid_npy", "|O"),
        (archive(*((f"{index}", b"") for index in range(MAX_ENTRIES + 1))), "invalid_npz", "more than"),
    ],
)
def test_invalid_npz(body: bytes, code: str, text: str) -> None:
    refused(lambda: decode(body, "application/x-npz", TWO, RAW, LIMITS), 400, code, text)


def test_bomb_is_refused_by_its_headers() -> None:
    body = npz(a=np.zeros(20_001, np.float32), compressed=True)
    assert len(body) < 1000
    refused(lambda: decode(body, None, TWO, RAW, LIMITS), 413, "tensor_too_large", "entry 'a.npy'")
    small = Limits(body_bytes=2000, image_pixels=1, tensor_elements=1 << 30)
    refused(lambda: decode(body, None, TWO, RAW, small), 413, "body_too_large", "unpacked")


def test_size_that_the_directory_hides_is_never_unpacked() -> None:
    body = npz(a=np.zeros(10_000, np.float32), compressed=True)
    size = (128 + 40_000).to_bytes(4, "little")
    assert size in body
    body = body.replace(size, (128 + 8).to_bytes(4, "little"))
    refused(lambda: decode(body, None, TWO, RAW, LIMITS), 400, "invalid_npz")


def test_memory_that_zlib_lacks_is_no_fault_of_the_body(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unpacker:
        eof, unconsumed_tail, unused_data = False, b"", b""

        def decompress(self, data: bytes, size: int) -> bytes:
            del data, size
            raise zlib.error("Error -4 while decompressing data: out of memory")

    monkeypatch.setattr(zlib, "decompressobj", lambda bits: Unpacker())
    with pytest.raises(MemoryError):
        decode(npz(a=A, b=B, compressed=True), None, TWO, RAW, LIMITS)


@pytest.mark.parametrize("compressed", [False, True])
def test_large_entries_are_unpacked_in_pieces(compressed: bool) -> None:
    array = np.random.default_rng(0).integers(0, 9, (7, 50_001)).astype(np.float32)
    body = npz(array, compressed=compressed)
    (read,) = read_npz(body, Limits()).values()
    np.testing.assert_array_equal(read, array)
    damaged = bytearray(body)
    damaged[len(body) // 2] ^= 1
    with pytest.raises(ServiceError) as caught:
        read_npz(bytes(damaged), Limits())
    assert (caught.value.status, caught.value.code) == (400, "invalid_npz")
