import numpy as np

from engine.spec import UNKNOWN, TensorSpec, arrays_in, is_known, spec_of, spell, tensor_specs

F32 = np.dtype(np.float32)


def test_tensor_spec_counts() -> None:
    spec = TensorSpec((2, 3, 4), F32)
    assert (spec.rank, spec.size, spec.nbytes) == (3, 24, 96)
    assert spec.with_shape([6, 4]) == TensorSpec((6, 4), F32)
    assert str(spec) == "(2,3,4)f32"
    assert TensorSpec((), F32).size == 1


def test_spec_of_values() -> None:
    array = np.zeros((2, 3), np.int64)
    assert spec_of(array) == TensorSpec((2, 3), np.dtype(np.int64))
    assert spec_of((array, 3, [None, "x"])) == (TensorSpec((2, 3), np.dtype(np.int64)), 3, (None, "x"))


def test_known_and_flattened() -> None:
    spec = TensorSpec((1,), F32)
    assert is_known((spec, (1, None)))
    assert not is_known((spec, [UNKNOWN]))
    assert list(tensor_specs((spec, 3, [spec, (spec,)]))) == [spec] * 3
    array = np.zeros(1)
    assert [a is array for a in arrays_in([array, (array, "x"), None])] == [True, True]
    assert str(UNKNOWN) == "unknown"


def test_specs_are_spelled_for_messages() -> None:
    spec = TensorSpec((2, 3), np.dtype(np.float32))
    assert spell(spec) == "(2,3)f32"
    assert spell((spec, [1, "a"], None)) == "((2,3)f32, (1, 'a'), None)"
    assert spell(tuple(range(100))) == "(0, 1, 2, 3, 4, 5, 6, 7, …)"
