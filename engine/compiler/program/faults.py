"""Errors that a mistake in the compiler raises: they are reported, and numpy layers run instead of the program."""

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
