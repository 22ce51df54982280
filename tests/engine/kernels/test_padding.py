import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ArgumentError
from engine.kernels.padding import pad, pad_constant, padded_shape
from tests.engine.kernels.cases import check_golden

MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def test_matches_pytorch() -> None:
    check_golden("pad", pad)


@given(st.sampled_from(sorted(MODES)), st.lists(st.integers(0, 3), min_size=4, max_size=4), st.data())
@settings(max_examples=100)
def test_pads_like_numpy(mode: str, pads: list[int], data: st.DataObject) -> None:
    shape = tuple(data.draw(st.integers(4, 6)) for _ in range(3))
    tensor = np.arange(np.prod(shape)).reshape(shape)
    width = [(0, 0), (pads[2], pads[3]), (pads[0], pads[1])]
    expected = np.pad(tensor, width, MODES[mode])  # type: ignore[call-overload]
    padded = pad(tensor, pads, mode)
    np.testing.assert_array_equal(padded, expected)
    assert padded.shape == padded_shape(shape, pads, mode)
    assert not np.shares_memory(padded, tensor)


@pytest.mark.parametrize(
    ("mode", "pads", "expected"),
    [
        ("constant", (-1, 2), [1, 2, 3, 9, 9]),
        ("constant", (2, -3), [9, 9, 0]),
        ("constant", (-2, -2), []),
        ("constant", (5, 0), [9, 9, 9, 9, 9, 0, 1, 2, 3]),
        ("reflect", (-1, 3), [1, 2, 3, 2, 1, 0]),
        ("reflect", (3, -2), [3, 2, 1, 0, 1]),
        ("reflect", (-4, 2), [2, 1]),
        ("replicate", (-3, 2), [3, 3, 3]),
        ("replicate", (6, -3), [0, 0, 0, 0, 0, 0, 0]),
        ("circular", (-1, 2), [1, 2, 3, 1, 2]),
        ("circular", (2, -1), [1, 2, 0, 1, 2]),
        ("circular", (4, 0), [0, 1, 2, 3, 0, 1, 2, 3]),
    ],
)
def test_negative_pads_crop(mode: str, pads: tuple[int, int], expected: list[int]) -> None:
    value = 9 if mode == "constant" else None
    np.testing.assert_array_equal(pad(np.arange(4), pads, mode, value), expected)


def test_no_padding_costs_no_copy_where_it_may_not() -> None:
    tensor = np.zeros((1, 2, 3))
    assert pad_constant(tensor, [(0, 0)]) is tensor
    assert pad(tensor, (0, 0), "reflect") is not tensor


@pytest.mark.parametrize(
    ("argument", "pads", "mode", "value"),
    [
        ("pad", (1,), "constant", None),
        ("pad", (1, 1, 1, 1, 1, 1), "constant", None),
        ("pad", (-3, -2), "constant", None),
        ("pad", (4, 0), "reflect", None),
        ("pad", (-3, -2), "replicate", None),
        ("pad", (0, 5), "circular", None),
        ("pad", (-1, 4), "circular", None),
        ("mode", (1, 1), "mirror", None),
        ("value", (1, 1), "reflect", 1.0),
    ],
)
def test_refuses_what_does_not_fit(
    argument: str, pads: tuple[int, ...], mode: str, value: float | None
) -> None:
    with pytest.raises(ArgumentError) as error:
        pad(np.zeros((2, 4)), pads, mode, value)
    assert error.value.argument == argument


def test_replicates_nothing_of_an_empty_axis() -> None:
    with pytest.raises(ArgumentError, match="for an axis of 0 with mode 'replicate'"):
        pad(np.zeros((2, 0)), (1, 1), "replicate")
