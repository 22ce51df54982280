import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ArgumentError
from engine.kernels.folding import fold, fold_shape, unfold, unfold_shape
from tests.engine.kernels.cases import ALL, check_golden

Geometry = tuple[tuple[int, ...], list[int], list[int], list[int], list[int]]


def test_unfold_matches_pytorch() -> None:
    check_golden("unfold", unfold)


def test_fold_matches_pytorch() -> None:
    check_golden("fold", fold)


@st.composite
def geometries(draw: st.DrawFn) -> Geometry:
    rank = draw(st.integers(1, 3))

    def several(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    kernel, dilation, padding, stride = several(1, 3), several(1, 2), several(0, 2), several(1, 3)
    sizes = [d * (k - 1) + 1 + extra for d, k, extra in zip(dilation, kernel, several(0, 3), strict=True)]
    return (draw(st.integers(0, 2)), 2, *sizes), kernel, dilation, padding, stride


@given(geometries())
@settings(max_examples=80)
def test_columns_are_windows(geometry: Geometry) -> None:
    shape, kernel, dilation, padding, stride = geometry
    tensor = np.random.default_rng(0).integers(-9, 10, shape)
    columns = unfold(tensor, kernel, dilation, padding, stride)
    assert columns.shape == unfold_shape(*geometry)
    padded = np.pad(tensor, [(0, 0), (0, 0), *((pad, pad) for pad in padding)])
    axes = list(zip(padded.shape[2:], kernel, dilation, stride, strict=True))
    counts = [(size - d * (k - 1) - 1) // s + 1 for size, k, d, s in axes]
    for column, place in enumerate(np.ndindex(*counts)):
        window = tuple(
            slice(q * s, q * s + d * (k - 1) + 1, d) for q, (_, k, d, s) in zip(place, axes, strict=True)
        )
        np.testing.assert_array_equal(columns[..., column], padded[(ALL, *window)].reshape(columns.shape[:2]))


@given(geometries())
@settings(max_examples=80)
def test_folding_is_the_adjoint_of_unfolding(geometry: Geometry) -> None:
    shape, kernel, dilation, padding, stride = geometry
    rng = np.random.default_rng(0)
    tensor = rng.integers(-9, 10, shape)
    columns = rng.integers(-9, 10, unfold_shape(*geometry))
    folded = fold(columns, shape[2:], kernel, dilation, padding, stride)
    assert folded.shape == shape == fold_shape(columns.shape, shape[2:], kernel, dilation, padding, stride)
    unfolded = unfold(tensor, kernel, dilation, padding, stride)
    assert (columns * unfolded).sum() == (folded * tensor).sum()


def test_unfolding_gives_an_array_of_its_own() -> None:
    tensor = np.ones((1, 2, 3, 3))
    assert not np.shares_memory(unfold(tensor, (3, 3), (1, 1), (0, 0), (1, 1)), tensor)
    assert not np.shares_memory(unfold(tensor, (1, 1), (1, 1), (0, 0), (1, 1)), tensor)


@pytest.mark.parametrize(
    ("argument", "shape", "output", "kernel", "stride"),
    [
        ("input", (1, 8), (4, 4), (2, 2), (2, 2)),
        ("input", (1, 9, 4), (4, 4), (2, 2), (2, 2)),
        ("input", (1, 8, 5), (4, 4), (2, 2), (2, 2)),
        ("output_size", (1, 8, 4), (4,), (2, 2), (2, 2)),
        ("kernel_size", (1, 8, 4), (4, 4), (2, 5), (2, 2)),
        ("stride", (1, 8, 4), (4, 4), (2, 2), (2, 0)),
        ("stride", (1, 8, 4), (4, 4), (2, 2), (2,)),
    ],
)
def test_refuses_columns_that_do_not_fit(
    argument: str,
    shape: tuple[int, ...],
    output: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
) -> None:
    with pytest.raises(ArgumentError) as error:
        fold_shape(shape, output, kernel, (1, 1), (0, 0), stride)
    assert error.value.argument == argument


def test_refuses_an_input_of_another_rank() -> None:
    with pytest.raises(ArgumentError, match="input: has 3 axes; expected 4"):
        unfold_shape((1, 2, 9), (2, 2), (1, 1), (0, 0), (1, 1))
