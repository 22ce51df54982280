"""Types and values of LLVM IR, as kernels use them."""

from typing import Any

from llvmlite import ir

F32, I1, I8, I32, I64 = ir.FloatType(), ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
POINTER = ir.PointerType()
KERNEL_TYPE = ir.FunctionType(ir.VoidType(), [POINTER, I64, I64])
ENTRY = "kernel"
"""Name of the function that a kernel's module defines."""

IRValue = Any
"""A value of LLVM's: llvmlite has no types of its own for them."""
IRIndex = int | Any
"""An element offset or count: a Python number, or a value of type i64."""
