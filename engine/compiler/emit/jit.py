"""Compiles kernels, once per process and target, and keeps their code."""

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import ENTRY
from engine.compiler.memory.headroom import compiler_turn
from engine.compiler.memory.region import Region


class Kernel(Protocol):
    """A kernel for one exact shape: a frozen dataclass, so that equal kernels are compiled once."""

    @property
    def chunks(self) -> int:
        """Parts that the work is split into; any thread may do any of them, in any order."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """What the kernel may touch of each argument, scratch memory left out: padding, layout and extents.

        A call whose arguments lack any of it is refused when it is made (`Selector.call`).
        """

    @property
    def scratch(self) -> int:
        """Elements of scratch memory that each thread needs; its address is the last argument."""

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Code:
    """Machine code of a kernel.

    Attributes:
        address: of its function.
        engine: what owns the code; it lives as long as this.
    """

    address: int
    engine: Any


class KernelCache:
    """The kernels of a process by target and shape, as long as something uses them. Safe to use from any thread."""

    def __init__(self) -> None:
        self._codes: WeakValueDictionary[tuple[Target, Kernel], Code] = WeakValueDictionary()
        self._lock = threading.Lock()

    def compile(self, kernel: Kernel, target: Target) -> Code:
        """Return a kernel's code, compiled the first time.

        Raises:
            MemoryError: too little memory is left for the compiler.
        """
        with self._lock:
            code = self._codes.get((target, kernel))
            if code is None:
                emitter = Emitter(target)
                kernel.emit(emitter)
                code = self._codes[target, kernel] = compile_module(emitter.finish(), ENTRY, target)
        return code


cache = KernelCache()
"""The kernels of this process."""


def compile_module(text: str, name: str, target: Target) -> Code:
    """Compile a module of LLVM IR; returns the code of its function `name`.

    No pass of the optimiser runs: emitters write what they mean, and a kernel compiles in half the time.

    Raises:
        MemoryError: too little memory is left for the compiler.
    """
    with compiler_turn():
        module = llvm.parse_assembly(text)
        machine = _machine(target)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
        engine.remove_module(module)  # the code stays; what it was made of is no longer needed
        return Code(engine.get_function_address(name), engine)


def assembly(kernel: Kernel, target: Target) -> str:
    """Return a kernel's machine code as text, for people who tune it."""
    emitter = Emitter(target)
    kernel.emit(emitter)
    return str(_machine(target).emit_assembly(llvm.parse_assembly(emitter.finish())))


def _machine(target: Target) -> Any:
    _initialize()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(cpu=target.cpu, features=target.features, opt=2, jit=True)


@lru_cache(maxsize=1)
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # addresses are written as the loops need them; looking for better ones takes most of the time and finds none
    llvm.set_option("kuiper", "-disable-lsr")
