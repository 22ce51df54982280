from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.dtypes import Array
from engine.errors import ArgumentError
from engine.kernels import blocks
from engine.layers.pooling import avg_pool, lp_pool, max_pool, max_pool_with_indices, pool_shape
from tests.engine.kernels.cases import ALL, check_golden

Pool = tuple[Array, list[int], list[int], list[int], list[int], bool]


def test_max_pool_matches_pytorch() -> None:
    check_golden("max_pool", max_pool)


def test_max_pool_with_indices_matches_pytorch() -> None:
    check_golden("max_pool_with_indices", max_pool_with_indices)


def test_avg_pool_matches_pytorch() -> None:
    check_golden("avg_pool", avg_pool)


def test_lp_pool_matches_pytorch() -> None:
    check_golden("lp_pool", lp_pool)


def windows(pool: Pool) -> Iterator[tuple[tuple[int, ...], list[tuple[int, ...]]]]:
    """Each window of one plane and the positions in the input that it covers."""
    tensor, kernel, stride, padding, dilation, _ = pool
    axes = list(zip(kernel, stride, padding, dilation, strict=True))
    for place in np.ndindex(pool_shape(tensor.shape, *pool[1:])[2:]):
        covered = [
            [at for at in range(q * s - p, q * s - p + k * d, d) if 0 <= at < size]
            for q, (k, s, p, d), size in zip(place, axes, tensor.shape[2:], strict=True)
        ]
        yield place, list(product(*covered))


@st.composite
def pools(draw: st.DrawFn, dilated: bool = True) -> Pool:
    rank = draw(st.integers(1, 3))

    def several(low: int, high: int) -> list[int]:
        return [draw(st.integers(low, high)) for _ in range(rank)]

    kernel, stride = several(1, 4), several(1, 4)
    dilation = several(1, 2) if dilated else [1] * rank
    padding = [draw(st.integers(0, k // 2)) for k in kernel]
    spatial = [d * (k - 1) + 1 + extra for d, k, extra in zip(dilation, kernel, several(0, 4), strict=True)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    tensor = rng.integers(-4, 5, (draw(st.integers(0, 2)), 2, *spatial)).astype(np.float64)
    return tensor, kernel, stride, padding, dilation, draw(st.booleans())


@given(pools(), st.integers(1, 500))
@settings(max_examples=80)
def test_max_pool_covers_every_window(pool: Pool, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "PLANE_BYTES", block)
        result = max_pool(*pool)
        maxima, indices = max_pool_with_indices(*pool)
    np.testing.assert_array_equal(maxima, result)
    for place, covered in windows(pool):
        values = [pool[0][(ALL, *at)] for at in covered]
        np.testing.assert_array_equal(result[(ALL, *place)], np.max(values, axis=0))
        flat = np.array([np.ravel_multi_index(at, pool[0].shape[2:]) for at in covered])
        np.testing.assert_array_equal(indices[(ALL, *place)], flat[np.argmax(values, axis=0)])


@given(pools(dilated=False), st.booleans(), st.sampled_from([None, 3, -2]))
@settings(max_examples=80)
def test_avg_pool_divides_by_what_it_should(pool: Pool, count_include_pad: bool, divisor: int | None) -> None:
    tensor, kernel, stride, padding, _, ceil_mode = pool
    result = avg_pool(tensor, kernel, stride, padding, ceil_mode, count_include_pad, divisor)
    for place, covered in windows(pool):
        total = np.sum([tensor[(ALL, *at)] for at in covered], axis=0)
        with_pads = [
            min(q * s - p + k, size + p) - (q * s - p)
            for q, k, s, p, size in zip(place, kernel, stride, padding, tensor.shape[2:], strict=True)
        ]
        count = divisor or (np.prod(with_pads) if count_include_pad else len(covered))
        np.testing.assert_allclose(result[(ALL, *place)], total / count, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64, np.uint8])
def test_takes_views_it_may_not_write_to(dtype: type) -> None:
    tensor: Array = np.random.default_rng(0).integers(0, 9, (5, 6, 2, 1)).astype(dtype).transpose(3, 2, 0, 1)
    tensor.flags.writeable = False
    before = tensor.copy()
    for pool in (max_pool, max_pool_with_indices):
        pool(tensor, (2, 2), (1, 1), (1, 1), (1, 1))
    avg_pool(tensor, (2, 2), (1, 1), (1, 1))
    np.testing.assert_array_equal(tensor, before)


def test_a_window_of_one_is_a_copy() -> None:
    tensor = np.ones((1, 1, 3))
    for result in (max_pool(tensor, (1,), (1,), (0,), (1,)), avg_pool(tensor, (1,), (1,), (0,))):
        np.testing.assert_array_equal(result, tensor)
        assert not np.shares_memory(result, tensor)


def test_the_last_nan_of_a_window_is_its_maximum() -> None:
    tensor = np.array([np.nan, 1, np.nan, 5, -np.inf, -np.inf]).reshape(1, 1, 6)
    maxima, indices = max_pool_with_indices(tensor, (3,), (1,), (0,), (1,))
    np.testing.assert_array_equal(maxima, [[[np.nan, np.nan, np.nan, 5]]])
    np.testing.assert_array_equal(indices, [[[2, 2, 2, 3]]])


def test_sums_halves_without_overflow() -> None:
    tensor = np.full((1, 1, 64), 6e4, np.float16)
    np.testing.assert_array_equal(avg_pool(tensor, (64,), (1,), (0,)), tensor[..., :1])


def test_integer_means_round_towards_zero() -> None:
    np.testing.assert_array_equal(avg_pool(np.array([[[-3, -4, 3, 4]]]), (2,), (2,), (0,)), [[[-3, 3]]])


def test_a_norm_of_minus_zero_counts_as_zero() -> None:
    with np.errstate(divide="ignore"):
        norm = lp_pool(np.full((1, 1, 2), -np.inf), -1, (2,), (1,))
    np.testing.assert_array_equal(norm, [[[np.inf]]])


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("input", {"input_shape": (1, 2, 9)}),
        ("input", {"input_shape": (1, 2, 9, 1)}),
        ("stride", {"stride": (2,)}),
        ("stride", {"stride": (0, 2)}),
        ("padding", {"padding": (0, 2)}),
        ("padding", {"padding": (-1, 0)}),
        ("dilation", {"dilation": (1, 0)}),
        ("kernel_size", {"kernel_size": (0, 3)}),
    ],
)
def test_refuses_what_does_not_fit(argument: str, change: dict[str, object]) -> None:
    fitting = {
        "input_shape": (1, 2, 9, 9),
        "kernel_size": (2, 3),
        "stride": (2, 2),
        "padding": (0, 1),
        "dilation": (1, 2),
        "ceil_mode": True,
    }
    assert pool_shape(**fitting) == (1, 2, 5, 4)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError) as error:
        pool_shape(**(fitting | change))  # type: ignore[arg-type]
    assert error.value.argument == argument


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("divisor_override", lambda tensor: avg_pool(tensor, (2,), (1,), (0,), divisor_override=0)),
        ("norm_type", lambda tensor: lp_pool(tensor, 0, (2,), (1,))),
        ("input", lambda tensor: lp_pool(tensor.astype(int), 2, (2,), (1,))),
    ],
)
def test_refuses_what_has_no_meaning(argument: str, call: Callable[[Array], Array]) -> None:
    with pytest.raises(ArgumentError) as error:
        call(np.ones((1, 1, 4)))
    assert error.value.argument == argument
