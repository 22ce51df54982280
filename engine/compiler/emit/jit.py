"""JIT compiler of kernels, once per process and target, with a cache of their code."""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from engine.compiler.emit.code_store import CodeStore, code_key, code_store
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.object_file import ObjectFile, link, machine
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import ENTRY
from engine.compiler.memory.region import Region
from engine.compiler.memory.weights import OWN_KERNELS


class Kernel(Protocol):
    """A kernel for one exact shape: a frozen dataclass, so that equal kernels are compiled once.

    Kernels that differ only in runtime dimensions run the code of one, their property `general`. The runtime dimensions
    are in their property `sizes`, if any: they follow the addresses.
    """

    __slots__ = ()

    @property
    def chunks(self) -> int:
        """Parts that the work is split into; any thread may do any of them, in any order."""

    @property
    def regions(self) -> tuple[Region, ...]:
        """The accessed region of each argument, without scratch memory: padding, layout and extents.

        A call whose arguments lack any of it is refused when it is made (`Selector.call`).
        """

    @property
    def scratch(self) -> int:
        """Elements of scratch memory that each thread needs, if any; its address is the last argument."""
        return 0

    def emit(self, e: Emitter) -> None:
        """Write the kernel."""

    def __hash__(self) -> int:
        return super().__hash__()  # a frozen dataclass has one of its attributes


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Code:
    """Machine code of a kernel.

    Attributes:
        address: address of its function.
        engine: what owns the code, and that of kernels that were linked with it; it lives as long as one of them.
        key: its cache key on disk; None if unknown.
    """

    address: int
    engine: Any
    key: str | None = None


class KernelCache:
    """The kernels of a process by target and shape, as long as something uses them. Thread-safe.

    Args:
        store: the compile cache; None for that of the process.
    """

    def __init__(self, store: CodeStore | None = None) -> None:
        self._store = store
        self._codes: WeakValueDictionary[tuple[Target, Kernel], Code] = WeakValueDictionary()
        self._objects: WeakValueDictionary[tuple[Target, Kernel], ObjectFile] = WeakValueDictionary()
        self._lock = threading.Lock()

    def compile(self, kernel: Kernel, target: Target) -> Code:
        """Return a kernel's code, compiled the first time.

        Raises:
            MemoryError: too little memory is left for the compiler.
        """
        made = self.start(kernel, target)
        return self.link([kernel], [made], target)[0]

    def start(self, kernel: Kernel, target: Target) -> Code | ObjectFile:
        """Return a kernel's code, if it is there, or else its object file, on which LLVM may still be at work.

        Raises:
            Exception: what a mistake in the kernel raises.
        """
        kernel = general(kernel)
        place = (target, kernel)
        with self._lock:
            known = self._codes.get(place) or self._objects.get(place)
            if known is not None and not (isinstance(known, ObjectFile) and known.has_failed):
                return known
            store = self._store or code_store()
            made = self._objects[place] = _object_file(kernel, target, store)
        made.make(lambda: _write(kernel, target, made.name), store, target)
        return made

    def link(
        self, kernels: Sequence[Kernel], started: Sequence[Code | ObjectFile], target: Target
    ) -> list[Code]:
        """Return the code of kernels that were started, linked all at once.

        Raises:
            MemoryError: too little memory is left for the compiler.
            RuntimeError: LLVM does not take what a kernel wrote.
        """
        objects = {made: made.content() for made in started if isinstance(made, ObjectFile)}
        if not objects:
            return [made for made in started if isinstance(made, Code)]
        engine = link(objects.values(), target)
        with self._lock:
            return [
                made
                if isinstance(made, Code)
                else self._codes.setdefault((target, general(kernel)), _code(made, engine))
                for kernel, made in zip(kernels, started, strict=True)
            ]


cache = KernelCache()
"""The kernels of this process."""


def compile_module(text: str, name: str, target: Target) -> Code:
    """Compile a module of LLVM IR; returns the code of its function `name`.

    Raises:
        MemoryError: too little memory is left for the compiler.
    """
    store = code_store()
    made = ObjectFile(name, code_key(f"{text} {target}") if store.is_on else None)
    made.make(lambda: text, store, target)
    return _code(made, link([made.content()], target))


def assembly(kernel: Kernel, target: Target) -> str:
    """Return a kernel's machine code as text, for people who tune it."""
    return str(machine(target).emit_assembly(llvm.parse_assembly(_write(general(kernel), target, ENTRY))))


def general(kernel: Kernel) -> Kernel:
    """Return the kernel whose code a kernel runs: itself, unless its property `general` names another.

    The other one takes the same arguments. Its code does not depend on the difference: that is in an argument.
    """
    other: Kernel = getattr(kernel, "general", kernel)
    return other


def sizes_of(kernel: Kernel) -> tuple[int, ...]:
    """Return a kernel's runtime dimensions: they follow the addresses of its arguments and scratch."""
    sizes: tuple[int, ...] = getattr(kernel, "sizes", ())
    return sizes


def _code(made: ObjectFile, engine: Any) -> Code:
    return Code(engine.get_function_address(made.name), engine, made.key)


def _object_file(kernel: Kernel, target: Target, store: CodeStore) -> ObjectFile:
    description = f"{kernel} {target}"
    # kernels that are linked together need names of their own
    name = f"{ENTRY}_{hashlib.sha256(description.encode()).hexdigest()[:32]}"
    is_own = type(kernel).__module__.startswith(OWN_KERNELS)  # the source of others is in no key
    return ObjectFile(name, code_key(description) if store.is_on and is_own else None)


def _write(kernel: Kernel, target: Target, name: str) -> str:
    """Return a kernel as a module of LLVM IR."""
    emitter = Emitter(target, name)
    kernel.emit(emitter)
    return emitter.finish()
