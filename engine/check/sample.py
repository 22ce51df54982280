"""Inputs that a graph takes, at random."""

from collections.abc import Sequence

import numpy as np

from engine.dtypes import Array
from engine.graph import RuntimeGraph
from engine.operator import RuntimeOperand
from engine.spec import TensorSpec

SEED = 0
_TABLE_ROWS = {"nn.Embedding": "num_embeddings"}
_LARGEST_INTEGER = 1


def sample_inputs(graph: RuntimeGraph, specs: Sequence[TensorSpec], seed: int = SEED) -> dict[str, Array]:
    """Return random inputs of given shapes and dtypes, the same for the same seed, by operand name.

    Floating-point and complex numbers are normally distributed; booleans are either; integers are 0 or 1, which are
    indices of anything with two elements, and for embeddings whatever has a row.
    """
    random = np.random.default_rng(seed)
    return {
        port.operand: _sample(random, spec, graph.operands[port.operand])
        for port, spec in zip(graph.inputs, specs, strict=True)
    }


def _sample(random: np.random.Generator, spec: TensorSpec, operand: RuntimeOperand) -> Array:
    kind = spec.dtype.kind
    if kind == "b":
        return random.integers(0, 2, spec.shape).astype(np.bool_)
    if kind in "iu":
        return random.integers(0, _largest(operand), spec.shape, endpoint=True).astype(spec.dtype)
    numbers = random.standard_normal(spec.shape)
    if kind == "c":
        numbers = numbers + 1j * random.standard_normal(spec.shape)
    return numbers.astype(spec.dtype)


def _largest(operand: RuntimeOperand) -> int:
    """Return the largest integer that an operand may carry."""
    rows = [
        operator.params.get(_TABLE_ROWS[operator.type])
        for operator in operand.consumers
        if operator.type in _TABLE_ROWS
    ]
    tables = [count - 1 for count in rows if isinstance(count, int)]
    return max(0, min(tables)) if tables and len(rows) == len(operand.consumers) else _LARGEST_INTEGER
