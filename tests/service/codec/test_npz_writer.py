from io import BytesIO

import numpy as np
import pytest

from engine import Array
from service.codec.npz_writer import PIECE_BYTES, NpzWriter

LARGE = np.random.default_rng(0).standard_normal((3, PIECE_BYTES // 4 + 1)).astype(np.float32)
ARRAYS: dict[str, Array] = {
    "large": LARGE,
    "transposed": LARGE.T,
    "strided": LARGE[:, ::2],
    "empty": np.empty((0, 3), np.int64),
    "scalar": np.array(1 - 2j),
    "booleans": np.array([True, False]),
    "swapped": np.arange(5, dtype=">i2"),
    "small": np.arange(7, dtype=np.uint8),
}


def written(arrays: dict[str, Array], text: bytes = b"{}") -> list[bytes | memoryview]:
    writer = NpzWriter()
    writer.write_arrays(arrays)
    writer.write_text("meta", text)
    return list(writer.close())


@pytest.mark.parametrize("name", ARRAYS)
def test_numpy_reads_each_array_as_it_was(name: str) -> None:
    with np.load(BytesIO(b"".join(written({name: ARRAYS[name]}, b"text")))) as archive:
        np.testing.assert_array_equal(archive[name], ARRAYS[name], strict=True)
        assert archive["meta"] == b"text"


def test_numpy_reads_many_arrays() -> None:
    with np.load(BytesIO(b"".join(written(ARRAYS)))) as archive:
        assert archive.files == [*ARRAYS, "meta"]
        for name, array in ARRAYS.items():
            np.testing.assert_array_equal(archive[name], array, strict=True)


def test_large_arrays_are_not_copied() -> None:
    pieces = written({"large": LARGE, "small": ARRAYS["small"]})
    views = [piece for piece in pieces if isinstance(piece, memoryview)]
    assert all(np.shares_memory(np.asarray(view), LARGE) for view in views)
    assert sum(map(len, views)) > LARGE.nbytes - PIECE_BYTES
    assert max(map(len, views)) == PIECE_BYTES
    assert len(pieces) == len(views) + 2, "what is small is joined"
