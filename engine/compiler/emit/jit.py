"""Compiles kernels, once per process and target, and keeps their code."""

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from engine.compiler.emit.code_store import CodeStore, code_key, code_store
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import ENTRY
from engine.compiler.memory.headroom import using_llvm
from engine.compiler.memory.region import Region

_OWN_KERNELS = "engine."


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
    """The kernels of a process by target and shape, as long as something uses them. Safe to use from any thread.

    Args:
        store: where code is looked for before it is compiled, and kept; None for the store of the process.
    """

    def __init__(self, store: CodeStore | None = None) -> None:
        self._store = store
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
                code = self._codes[target, kernel] = _link(self._object(kernel, target), ENTRY, target)
        return code

    def _object(self, kernel: Kernel, target: Target) -> bytes:
        store = self._store or code_store()
        is_own = type(kernel).__module__.startswith(_OWN_KERNELS)  # the source of others is not in the key
        if not (store.is_on and is_own):
            return _emit(kernel, target)
        key = code_key(f"{kernel} {target}")
        code = store.load(key)
        if code is None:
            code = _emit(kernel, target)
            store.save(key, code)
        return code


cache = KernelCache()
"""The kernels of this process."""


def compile_module(text: str, name: str, target: Target) -> Code:
    """Compile a module of LLVM IR; returns the code of its function `name`.

    No pass of the optimiser runs: emitters write what they mean, and a kernel compiles in half the time.

    Raises:
        MemoryError: too little memory is left for the compiler.
    """
    return _link(_compile(text, target), name, target)


def _emit(kernel: Kernel, target: Target) -> bytes:
    emitter = Emitter(target)
    kernel.emit(emitter)
    return _compile(emitter.finish(), target)


def _compile(text: str, target: Target) -> bytes:
    """Return the object file of a module of LLVM IR."""
    with using_llvm():
        code: bytes = _machine(target).emit_object(llvm.parse_assembly(text))
        return code


def _link(code: bytes, name: str, target: Target) -> Code:
    """Return the code of a function of an object file."""
    with using_llvm():
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(target))
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
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
