"""Arrays in memory that processes share."""

import os
import tempfile

import numpy as np
import pytest

from service.decoding import shared_file

ROOM = 1 << 12


@pytest.mark.parametrize("rank", [0, 1, 3, shared_file.MAX_RANK])
def test_arrays_of_every_rank_are_read_as_they_were_written(rank: int) -> None:
    array = np.arange(2 if rank else 1, dtype=np.int16).reshape((1,) * (rank - 1) + (2,) * bool(rank))
    with tempfile.TemporaryFile() as file:
        os.truncate(file.fileno(), ROOM)
        (read,) = shared_file.read(file.fileno(), ROOM, shared_file.write(file.fileno(), ROOM, [array]))
    np.testing.assert_array_equal(read, array, strict=True)


@pytest.mark.parametrize(
    "entry",
    [
        ["<f4", [1] * (shared_file.MAX_RANK + 1), 0],
        ["<f4", [-1], 0],
        ["<f4", [1], -1],
        ["|O8", [1], 0],
        ["<f4", [ROOM], 0],
        ["<f4", [1]],
        None,
    ],
)
def test_invalid_descriptions_are_refused(entry: object) -> None:
    with tempfile.TemporaryFile() as file:
        os.truncate(file.fileno(), ROOM)
        with pytest.raises(ValueError, match="array"):
            shared_file.read(file.fileno(), ROOM, [entry])
