"""What golden cases are too small to show: blocks, memory layouts, values that are no numbers."""

import math

import numpy as np
import pytest

from engine.kernels import activation, matrix, normalization
from engine.kernels.activation import ActivationKernel, activate
from engine.kernels.attention import attend, attention_weights
from engine.layers.softmax import log_softmax, softmax

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _quiet() -> object:
    """Run as a graph runs its layers: what floating point signals is of no interest."""
    with np.errstate(all="ignore"):
        yield


def test_large_arrays_are_computed_block_by_block_without_a_seam() -> None:
    x = RNG.normal(size=3 * 65536 + 17).astype(np.float32)
    whole = x / (1 + np.exp(-x))
    np.testing.assert_allclose(activate(activation.silu, x), whole, rtol=1e-6)


def test_an_activation_gives_a_new_array_of_the_same_dtype() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        x = np.array(-1.5, dtype)
        result = activate(activation.relu, x)
        assert isinstance(result, np.ndarray)
        assert (result.dtype, result.shape) == (x.dtype, ())
        assert x == -1.5


@pytest.mark.parametrize(
    ("kernel", "parameters"),
    [
        (activation.relu, ()),
        (activation.clamp, (0, 6)),
        (activation.leaky_relu, (0.1,)),
        (activation.leaky_relu, (-0.1,)),
        (activation.elu, (1.0,)),
        (activation.hardsigmoid, ()),
        (activation.hardswish, ()),
        (activation.hardshrink, (0.5,)),
        (activation.softshrink, (0.5,)),
        (activation.softplus, (1.0, 20.0)),
        (activation.threshold, (0.1, 3.0)),
        (activation.mish, ()),
    ],
)
def test_nan_stays_nan_in_activations(kernel: ActivationKernel, parameters: tuple[float, ...]) -> None:
    x = np.array([np.nan, 1], np.float32)
    assert np.isnan(activate(kernel, x, *parameters)).tolist() == [True, False]


@pytest.mark.parametrize("x", [-1e4, -100.0, 100.0, 1e4])
def test_far_from_zero_activations_take_their_limits(x: float) -> None:
    value = np.array([x], np.float32)
    right = x > 0
    assert activate(activation.sigmoid, value) == pytest.approx([float(right)])
    assert activate(activation.silu, value) == pytest.approx([x if right else 0.0])
    assert activate(activation.mish, value) == pytest.approx([x if right else 0.0])
    assert activate(activation.log_sigmoid, value) == pytest.approx([0.0 if right else x])
    assert activate(activation.softplus, value, 1.0, 20.0) == pytest.approx([x if right else 0.0])


def test_softmax_does_not_overflow_and_leaves_masked_elements_at_zero() -> None:
    x = np.array([[1000, 1000, -np.inf]], np.float32)
    np.testing.assert_array_equal(softmax(x, 1), [[0.5, 0.5, 0]])
    np.testing.assert_allclose(log_softmax(x, 1), [[-math.log(2), -math.log(2), -np.inf]], rtol=1e-6)


def test_softmax_of_nothing_is_nothing() -> None:
    assert softmax(np.empty((0, 3), np.float32), 0).shape == (0, 3)
    assert log_softmax(np.empty((2, 0), np.float32), 1).shape == (2, 0)


def test_matrices_of_any_layout_multiply() -> None:
    base = RNG.normal(size=(4, 3, 2, 5)).astype(np.float32)
    strided, other = (
        base[::2, :, :, ::2].transpose(1, 3, 0, 2),
        RNG.normal(size=(3, 2, 4)).astype(np.float32)[:, :, ::2],
    )
    left = strided.reshape(3, 3, 4).swapaxes(1, 2)[:, :, :2]
    np.testing.assert_allclose(matrix.matmul(left, other), np.einsum("bij,bjk->bik", left, other), rtol=1e-5)
    np.testing.assert_allclose(
        matrix.matmul(base, base[0, 0].T), np.einsum("abij,kj->abik", base, base[0, 0]), rtol=1e-4
    )


def test_products_do_not_write_to_what_is_added() -> None:
    added = np.ones((2, 2), np.float32)
    result = matrix.add_product(added, np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), 3, 2)
    np.testing.assert_array_equal(result, [[5, 3], [3, 5]])
    np.testing.assert_array_equal(added, np.ones((2, 2)))


def test_with_beta_zero_what_is_added_does_not_matter() -> None:
    product = matrix.add_product(
        np.full((1, 1), np.nan, np.float32), *(np.ones((1, 1), np.float32),) * 2, 0, 1
    )
    assert product == 1


def test_variance_is_taken_around_the_mean() -> None:
    x = (RNG.normal(size=(2, 64)) + 1e4).astype(np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(normalization.layer_norm(x, 1, None, None, 1e-5), expected, atol=2e-3)


@pytest.mark.parametrize("bias_rows", [0, 1, 700])
def test_attention_over_many_keys_is_computed_some_queries_at_a_time(bias_rows: int) -> None:
    """1.4 million scores are several blocks: the last one is smaller."""
    query, key, value = (RNG.normal(size=(1, 2, 700, 8)) for _ in range(3))
    key, value = key.repeat(2, axis=-2)[..., :1000, :], value.repeat(2, axis=-2)[..., :1000, :]
    mask = RNG.normal(size=(2, bias_rows, 1000)) if bias_rows else None
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(8) + (0 if mask is None else mask)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    wanted = weights / weights.sum(-1, keepdims=True) @ value
    np.testing.assert_allclose(
        attend(query, key, value, mask, False, None, False), wanted, rtol=1e-10, atol=1e-14
    )


def test_a_query_that_sees_no_key_gets_zeros_or_nan() -> None:
    query = np.ones((1, 2, 3), np.float32)
    mask = np.array([[True, True], [False, False]])
    attended = attend(query, query, query, mask, False, None, False)
    np.testing.assert_array_equal(attended, [[[1, 1, 1], [0, 0, 0]]])
    weights = attention_weights(query, query, np.where(mask, np.float32(0), np.float32(-np.inf)), 1.0)
    assert np.isnan(weights[0, 1]).all()
    assert not np.isnan(weights[0, 0]).any()
