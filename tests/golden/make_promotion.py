"""Write promotion.json and elementwise.npz: what PyTorch makes of every pair of dtypes, and of every function.

Run from the repository's root: `python -m tests.golden.make_promotion`. Needs the `train` extra.
"""

import json
import operator
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.kernels.elementwise import BINARY, UNARY
from tests.golden.elementwise_inputs import DTYPES, MIXED, POWERS, SCALARS, Array, mixed_values, pair, values

FOLDER = Path(__file__).parent
_ERRORS = (RuntimeError, NotImplementedError, TypeError)

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "eq": operator.eq,
    "lt": operator.lt,
}
"""Functions between a tensor and a number, as Python's operators, which take the number on either side."""


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape))


def _attempt(function: Callable[..., torch.Tensor], *arguments: Any) -> Array | None:
    """Return the result as an array, None where PyTorch refuses the dtypes or has a result that numpy cannot hold."""
    try:
        result = function(*arguments)
    except _ERRORS:
        return None
    return None if result.dtype == torch.complex32 else result.numpy()


def promotion_table() -> dict[str, dict[str, str]]:
    """Return the result type of every pair: `float32` has dimensions, `float32.0` has none, `a float` is a number."""
    operands: dict[str, Any] = dict(SCALARS)
    for name in DTYPES:
        operands[name] = torch.zeros(1, dtype=getattr(torch, name))
        operands[f"{name}.0"] = torch.zeros((), dtype=getattr(torch, name))
    return {
        first: {
            second: str(torch.result_type(one, other))
            .removeprefix("torch.")
            .replace("complex32", "complex64")
            for second, other in operands.items()
        }
        for first, one in operands.items()
    }


def elementwise_results() -> dict[str, Any]:
    """Return `function/operands` -> result; what PyTorch refuses is left out."""
    results: dict[str, Array | None] = {}
    for dtype in DTYPES:
        for name in UNARY:
            results[f"{name}/{dtype}"] = _attempt(getattr(torch, name), _tensor(values(dtype)))
        for name in BINARY:
            results[f"{name}/{dtype}"] = _attempt(getattr(torch, name), *map(_tensor, pair(name, dtype)))
        for exponent in POWERS:
            results[f"pow/{dtype}/{exponent}"] = _attempt(torch.pow, _tensor(values(dtype)), exponent)
    for name, left, right in MIXED:
        operands = [_tensor(mixed_values(*x)) if isinstance(x, tuple) else x for x in (left, right)]
        function = (
            getattr(torch, name) if all(isinstance(x, torch.Tensor) for x in operands) else _OPERATORS[name]
        )
        results[f"{name}/{left}/{right}"] = _attempt(function, *operands)
    return {key: result for key, result in results.items() if result is not None}


def main() -> None:
    """Write both files."""
    torch.set_num_threads(1)
    table = json.dumps(promotion_table(), indent=0, separators=(",", ":"))
    (FOLDER / "promotion.json").write_text(table + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results: dict[str, Any] = elementwise_results()
        np.savez_compressed(FOLDER / "elementwise.npz", **results)


if __name__ == "__main__":
    main()
