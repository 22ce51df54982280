"""The functions PNNX writes in expressions: how many arguments they take, and what they do.

Scalars in an expression are 0-d tensors of the traced model: arithmetic on them is done in
bool, int64, float32 or complex64, so that `int(mul(size(@0,2),0.7))` comes out as it did in PyTorch.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from engine.dtypes import TORCH_DTYPES, Array
from engine.kernels.elementwise import BINARY, UNARY
from engine.kernels.promotion import Dtype, PythonScalar, scalar_dtype
from engine.kernels.ufunc import Binary, Unary
from engine.spec import UNKNOWN, Spec, TensorSpec, Value

_ALIASES = {
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "max": "maximum",
    "min": "minimum",
}
"""PNNX's name -> PyTorch's, where they differ."""

_WHOLE = frozenset(("ceil", "floor", "round", "trunc"))
_INT64_END = 2**63


@dataclass(frozen=True, slots=True)
class Function:
    """A function of an expression.

    Attributes:
        name: as PNNX writes it.
        least: fewest arguments it takes.
        most: most arguments it takes.
        evaluate: the function over values. Raises TypeError, ValueError and ArithmeticError.
        infer: the function over specs, UNKNOWN not among them. Raises the same.
        elementwise: whether `evaluate` takes, after its arguments, an array to write the result to if it fits.
    """

    name: str
    least: int
    most: int
    evaluate: Callable[..., Value]
    infer: Callable[..., Spec]
    elementwise: bool = False

    def takes(self, count: int) -> bool:
        """Return whether the function takes `count` arguments."""
        return self.least <= count <= self.most

    def wrong_count(self, count: int) -> str:
        """Word that the function does not take `count` arguments."""
        counts = " or ".join(str(number) for number in range(self.least, self.most + 1))
        return f"{self.name} takes {counts} argument{'s' if self.most != 1 else ''}, got {count}"


def _number(name: str, value: Any) -> PythonScalar:
    if isinstance(value, int) and not -_INT64_END <= value < _INT64_END:
        raise ValueError(f"{name} takes integers of at most 64 bits")
    if isinstance(value, bool | int | float | complex):
        return value
    kind = "None" if value is None else f"a {type(value).__name__}"
    raise TypeError(f"{name} takes tensors and numbers, got {kind}")


def _as_tensor(value: PythonScalar) -> Array:
    return np.asarray(value, scalar_dtype(value))


def _unary(kernel: Unary, x: Any, scratch: Array | None = None) -> Value:
    if isinstance(x, np.ndarray):
        return kernel(x, scratch)
    result: Value = kernel(_as_tensor(_number(kernel.name, x))).item()
    if kernel.name in _WHOLE and isinstance(result, float) and abs(result) < _INT64_END:
        # A scalar rounds to an int, in TorchScript as where PNNX folds constants.
        return int(result)
    return result


def _infer_unary(kernel: Unary, x: Any) -> Spec:
    if isinstance(x, TensorSpec):
        return TensorSpec(x.shape, kernel.result_dtype(x))
    return _unary(kernel, x)  # type: ignore[return-value]  # a number's spec is the number


def _binary(kernel: Binary, a: Any, b: Any, scratch: Array | None = None) -> Value:
    if isinstance(a, np.ndarray):
        return kernel(a, b if isinstance(b, np.ndarray) else _number(kernel.name, b), scratch)
    if isinstance(b, np.ndarray):
        return kernel(_number(kernel.name, a), b, scratch)
    left, right = _number(kernel.name, a), _number(kernel.name, b)
    if kernel.name == "pow" and isinstance(left, int) and isinstance(right, int) and right < 0:
        left = float(left)  # as TorchScript has it; tensors of integers refuse
    result: Value = kernel(_as_tensor(left), _as_tensor(right)).item()
    return result


def _infer_binary(kernel: Binary, a: Any, b: Any) -> Spec:
    tensors = [x.shape for x in (a, b) if isinstance(x, TensorSpec)]
    if not tensors:
        return _binary(kernel, a, b)  # type: ignore[return-value]  # a number's spec is the number
    left, right = (x if isinstance(x, TensorSpec) else _number(kernel.name, x) for x in (a, b))
    return TensorSpec(kernel.broadcast(*tensors), kernel.result_dtype(left, right))


def _size(x: Any, dim: Any = None) -> Any:
    """Return the extents of a tensor or of its spec, or the one of dimension `dim`."""
    if not isinstance(x, np.ndarray | TensorSpec):
        raise TypeError(f"size takes a tensor, got {_number('size', x)!r}")
    shape = x.shape
    if dim is None:
        return shape
    if not isinstance(dim, int):
        raise TypeError(f"size takes the number of a dimension, got {dim!r}")
    if not -len(shape) <= dim < len(shape):
        raise ValueError(f"dimension {dim} is out of range for a tensor of rank {len(shape)}")
    return shape[dim]


def _int(x: Any) -> int:
    if isinstance(x, np.ndarray):
        if x.size != 1:
            raise ValueError(f"int takes a tensor of one element, got shape {x.shape}")
        x = x.item()
    number = _number("int", x)
    if isinstance(number, complex):
        raise TypeError("int takes a real number, got a complex one")
    if not abs(number) < _INT64_END:
        raise ValueError(f"int takes a number that fits in 64 bits, got {number}")
    return int(number)


def _infer_int(x: Any) -> Spec:
    return UNKNOWN if isinstance(x, TensorSpec) else _int(x)


def _cast(dtype: Dtype, x: Any) -> Any:
    """Convert to `dtype`; a number stays a number, of the type that goes with it."""
    array = x if isinstance(x, np.ndarray) else _as_tensor(_number(str(dtype), x))
    if array.dtype.kind == "c" and dtype.kind not in "cb":
        array = array.real
    converted = array.astype(dtype)
    return converted if isinstance(x, np.ndarray) else converted.item()


def _infer_cast(dtype: Dtype, x: Any) -> Spec:
    return TensorSpec(x.shape, dtype) if isinstance(x, TensorSpec) else _cast(dtype, x)


def _table() -> dict[str, Function]:
    functions = [Function("size", 1, 2, _size, _size), Function("int", 1, 1, _int, _infer_int)]
    for name, dtype in TORCH_DTYPES.items():
        functions.append(Function(name, 1, 1, partial(_cast, dtype), partial(_infer_cast, dtype)))
    for name, unary in UNARY.items():
        functions.append(
            Function(
                name=name,
                least=1,
                most=1,
                evaluate=partial(_unary, unary),
                infer=partial(_infer_unary, unary),
                elementwise=True,
            )
        )
    binaries = BINARY | {alias: BINARY[name] for alias, name in _ALIASES.items()}
    for name, binary in binaries.items():
        functions.append(
            Function(
                name=name,
                least=2,
                most=2,
                evaluate=partial(_binary, binary),
                infer=partial(_infer_binary, binary),
                elementwise=True,
            )
        )
    return {function.name: function for function in functions}


FUNCTIONS: dict[str, Function] = _table()
"""Every function by the name it has in an expression; besides those PNNX writes, the other elementwise kernels."""


def unknown_function(name: str) -> str:
    """Word that there is no function of this name, with those that look most like it."""
    close = difflib.get_close_matches(name[:40], FUNCTIONS)
    hint = f" (nearest known: {', '.join(close)})" if close else ""
    return f"unknown function {name[:40]!r}{hint}"
