"""Constants of LLVM IR, each made and worded once: kernels use the same few thousands of times."""

from functools import lru_cache

from llvmlite import ir

from engine.compiler.emit.types import F32, I1, I32, I64, IRValue

_MAX = 4096


@lru_cache(_MAX)
def index(value: int) -> IRValue:
    """Return an i64."""
    return ir.Constant(I64, value)


@lru_cache(_MAX)
def integer(value: int) -> IRValue:
    """Return an i32."""
    return ir.Constant(I32, value)


@lru_cache(_MAX)
def integers(values: tuple[int, ...]) -> IRValue:
    """Return a vector of i32."""
    return ir.Constant(ir.VectorType(I32, len(values)), list(map(integer, values)))


@lru_cache(_MAX)
def mask(lanes: int, count: int) -> IRValue:
    """Return a vector of i1, of which the first `count` are set."""
    return ir.Constant(
        ir.VectorType(I1, lanes), [ir.Constant(I1, int(lane < count)) for lane in range(lanes)]
    )


@lru_cache(_MAX)
def undefined(kind: IRValue) -> IRValue:
    """Return any value of a type."""
    return ir.Constant(kind, ir.Undefined)


def number(value: float) -> IRValue:
    """Return a float32."""
    return _number(float(value).hex())


def splat(value: float, lanes: int) -> IRValue:
    """Return a vector that holds a float32 in all lanes."""
    return _splat(float(value).hex(), lanes)


# 0 and -0 are equal, and NaN is not equal to itself: numbers are compared by their digits


@lru_cache(_MAX)
def _number(digits: str) -> IRValue:
    return ir.Constant(F32, float.fromhex(digits))


@lru_cache(_MAX)
def _splat(digits: str, lanes: int) -> IRValue:
    return ir.Constant(ir.VectorType(F32, lanes), [_number(digits)] * lanes)
