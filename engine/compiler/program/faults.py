"""Errors raised by compiler bugs: they are reported, and the reference implementation runs instead."""

from engine.compiler.memory.region import RegionError
from engine.errors import BuildTimeoutError, CompileError

FAULTS = (
    CompileError,
    BuildTimeoutError,
    RegionError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
)
