import numpy as np
import pytest

from engine.compiler.memory.alignment import address_of
from engine.dtypes import Array

X = np.arange(24, dtype=np.float32).reshape(4, 6)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize(
    "array",
    [
        X,
        X[1:],
        X[:, 1:],
        X.T,
        X[::-1],
        _read_only(X),
        X[:0],
        np.ones((), np.float32),
        np.zeros(3, np.uint64),
    ],
    ids=["whole", "later", "columns", "turned", "reversed", "read-only", "empty", "scalar", "words"],
)
def test_address_is_that_of_the_first_element(array: Array) -> None:
    assert address_of(array) == array.ctypes.data
