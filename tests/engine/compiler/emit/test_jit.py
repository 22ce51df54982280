"""Compilation of kernels to machine code."""

from engine.compiler.emit.jit import assembly
from engine.compiler.emit.target import host_target
from engine.compiler.emit.types import ENTRY
from tests.engine.compiler.tiny import Follow


def test_assembly_is_that_of_the_kernel() -> None:
    text = assembly(Follow(previous=6789, chunks=1), host_target())
    assert f"{ENTRY}:" in text
    assert "ret" in text
    assert text != assembly(Follow(previous=2, chunks=1), host_target())
