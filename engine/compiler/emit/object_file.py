"""Object files: what LLVM makes of a module of its IR, and how several of them become code in memory.

One thread of its own works for LLVM, which serves no two threads at once through llvmlite: while it compiles a kernel,
the requesting thread writes the next one.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm

from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.target import Target
from engine.compiler.memory.memory_guard import check_memory
from engine.compiler.memory.release import make_room_for_compiler

_EFFORT = 2
_using = threading.Lock()  # the memory guard checks for the room of one use of LLVM at a time


class ObjectFile:
    """The object file of one function, which is there already or being made.

    Attributes:
        name: name of the function.
        key: its cache key; None if it is not cached.
    """

    def __init__(self, name: str, key: str | None) -> None:
        self.name = name
        self.key = key
        self._content: Future[bytes] = Future()

    @property
    def has_failed(self) -> bool:
        """Whether compilation failed: a later caller retries, as memory may be free by then."""
        return self._content.done() and self._content.exception() is not None

    def make(self, write: Callable[[], str], store: CodeStore, target: Target) -> None:
        """Load the cached code; without any, write the function and leave it to LLVM.

        Args:
            write: returns the function's module as LLVM IR.
            store: the compile cache.
            target: the compilation target.

        Raises:
            Exception: what `write` raises; `content` raises the same.
        """
        try:
            known = None if self.key is None else store.load(self.key)
            if known is not None:
                self._content.set_result(known)
            else:
                make_room_for_compiler()
                _llvm_thread().submit(self._compile, write(), store, target)
        except BaseException as error:
            self._content.set_exception(error)
            raise

    def content(self) -> bytes:
        """Return the object file, once it is made.

        Raises:
            MemoryError: too little memory is left for the compiler.
            RuntimeError: LLVM does not take the module.
        """
        return self._content.result()

    def _compile(self, text: str, store: CodeStore, target: Target) -> None:
        try:
            # another process, started at the same time, may have made it while this one wrote it and waited
            content = None if self.key is None else store.load(self.key)
            if content is None:
                content = compile_text(text, target)
                if self.key is not None:
                    store.save(self.key, content)
            self._content.set_result(content)
        except BaseException as error:  # raised in the waiting thread
            self._content.set_exception(error)


def compile_text(text: str, target: Target, effort: int = _EFFORT) -> bytes:
    """Return the object file of a module of LLVM IR.

    No optimiser pass runs: emitters write optimal code, and a kernel compiles in half the time.

    Args:
        text: the module.
        target: the compilation target.
        effort: LLVM's own level of effort, 0 to 3, which changes how fast the code is and not what it computes.

    Raises:
        MemoryError: too little memory is left for the compiler.
        RuntimeError: LLVM does not take the module.
    """
    with _using:
        check_memory()
        content: bytes = machine(target, effort).emit_object(llvm.parse_assembly(text))
        return content


def link(contents: Iterable[bytes], target: Target) -> Any:
    """Return LLVM's engine that holds the code of object files; it takes the time of one of them for each 20 more.

    Raises:
        MemoryError: too little memory is left.
    """
    with _using:
        check_memory()
        empty = llvm.parse_assembly("")
        engine = llvm.create_mcjit_compiler(empty, machine(target))
        engine.remove_module(empty)  # code would be generated of it, which reads 8 MB of LLVM
        for content in contents:
            engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        engine.finalize_object()
        return engine


def machine(target: Target, effort: int = _EFFORT) -> Any:
    """Return LLVM's own description of a target, which compiles with a level of effort."""
    _initialize()
    triple = llvm.Target.from_default_triple()
    return triple.create_target_machine(cpu=target.cpu, features=target.features, opt=effort, jit=True)


@lru_cache(maxsize=1)
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # addresses are written as the loops need them; looking for better ones takes most of the time and finds none
    llvm.set_option("kuiper", "-disable-lsr")


@lru_cache(maxsize=1)
def _llvm_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="llvm")
