"""Activations over all binades against float64, with the errors that their docstrings name."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from engine.compiler.emit.activations import gelu
from engine.compiler.emit.target import Target
from engine.dtypes import Array
from tests.cases import check_each
from tests.engine.compiler.emit.points import POINTS
from tests.engine.compiler.harness import every_target
from tests.engine.compiler.pointwise_kernel import applied, values_of


def _sigmoid(x: Array) -> Any:
    return np.exp(np.minimum(x, 0)) / (1 + np.exp(-np.abs(x)))


def _mish(x: Array) -> Any:
    root = np.exp(np.minimum(x, 40))
    return x * (root * (root + 2)) / (root * (root + 2) + 2)


def _gelu(x: Array) -> Any:
    return x * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2)) / 2


def _gelu_tanh(x: Array) -> Any:
    return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


def _softplus(x: Array, beta: float, threshold: float) -> Any:
    y = beta * x
    return np.where(y > threshold, x, (np.maximum(y, 0) + np.log1p(np.exp(-np.abs(y)))) / beta)


CASES: dict[str, tuple[Callable[[Array], Any], tuple[float, ...], float]] = {
    "clamp": (lambda x: np.clip(x, -1.5, 3), (-1.5, 3.0), 0.0),
    "elu": (lambda x: np.where(x > 0, x, 1.5 * np.expm1(x)), (1.5,), 1.3e-7),
    "gelu": (_gelu, (), 1.5e-7),
    "gelu_tanh": (_gelu_tanh, (), 1.5e-7),
    "hardsigmoid": (lambda x: np.clip(x + 3, 0, 6) / 6, (), 2e-7),
    "hardswish": (lambda x: x * np.clip(x + 3, 0, 6) / 6, (), 2e-7),
    "leaky_relu": (lambda x: np.where(x > 0, x, 0.01 * x), (0.01,), 1e-7),
    "mish": (_mish, (), 2.5e-7),
    "relu6": (lambda x: np.clip(x, 0, 6), (), 0.0),
    "sigmoid": (_sigmoid, (), 2.2e-7),
    "silu": (lambda x: x * _sigmoid(x), (), 2.2e-7),
    "softplus": (lambda x: _softplus(x, 0.5, 20), (0.5, 20.0), 1.6e-7),
}
TO_INPUT = ("gelu", "gelu_tanh", "hardswish")
"""Functions whose error is small against the input, not against a result near 0."""


@every_target
def test_error_over_all_binades(target: Target) -> None:
    def check(name: str) -> None:
        reference, parameters, bound = CASES[name]
        result = values_of(target, POINTS, name, *parameters)
        with np.errstate(all="ignore"):
            exact = np.asarray(reference(POINTS.astype(np.float64)))
            error = np.abs(result - exact)
            size = np.maximum(np.abs(POINTS), 1e-2) if name in TO_INPUT else np.abs(exact)
            # sigmoid is 0 from where it is below 3e-39; silu has that times its input
            size = size + 4e-39 * np.clip(np.abs(POINTS), 1, 100) / bound if bound else 1
            relative = np.where(np.isfinite(exact), error / size, 0)
        relative[np.isinf(exact.astype(np.float32)) & (result == exact.astype(np.float32))] = 0
        worst = int(np.argmax(relative))
        print(name, relative[worst], POINTS[worst])
        assert relative[worst] <= bound * (1 if target.has_fma else 1.5), (POINTS[worst], result[worst])
        np.testing.assert_array_equal(np.isnan(result[np.isnan(POINTS)]), True)

    check_each(CASES, check)


@every_target
def test_scalars_get_the_digits_of_vectors(target: Target) -> None:
    """Which elements vectors hold depends on shapes and strides, and results must not."""
    np.testing.assert_array_equal(
        applied(target, POINTS, gelu, is_scalar=True), values_of(target, POINTS, "gelu")
    )
