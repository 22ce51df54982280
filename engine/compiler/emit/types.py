"""Types and values of LLVM IR, as kernels use them."""

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

F32, I1, I8, I32, I64 = ir.FloatType(), ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
I16 = ir.IntType(16)
POINTER = ir.PointerType()
KERNEL_TYPE = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])
WORD_BYTES = 4
"""Bytes of an element: a float32, or a pair of bfloat16."""
ENTRY = "kernel"
"""Name of the function that a kernel's module defines."""


class BFloatType(ir.Type):  # type: ignore[misc]  # llvmlite has no types
    """bfloat16, which llvmlite has no type for."""

    def __str__(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BFloatType)

    def __hash__(self) -> int:
        return hash(BFloatType)


BF16 = BFloatType()


@dataclass(frozen=True, slots=True)
class TileShape:
    """Shape of a matrix register: rows, and words of a row."""

    rows: int
    words: int


IRValue = Any
"""A value of LLVM's: llvmlite has no types of its own for them."""
IRIndex = int | Any
"""An element offset or count: a Python number, or a value of type i64."""
