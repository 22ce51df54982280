"""Kernels that are compiled and linked together."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from llvmlite import ir

from engine.compiler.emit import object_file
from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Code, KernelCache
from engine.compiler.emit.object_file import ObjectFile
from engine.compiler.emit.target import Target, host_target
from engine.compiler.emit.types import I64
from engine.compiler.kernels.softmax import SoftmaxKernel
from engine.compiler.memory.region import Region

KERNELS = [
    SoftmaxKernel(
        length=length,
        x_step=1,
        out_step=1,
        shape=(1,),
        x_strides=(length,),
        out_strides=(length,),
        is_log=False,
        skip_masked=False,
    )
    for length in (3, 10, 17)
]


@dataclass(frozen=True)
class Broken:
    """A kernel with a mistake."""

    text: str
    chunks: int = 1
    regions: tuple[Region, ...] = ()
    scratch: int = 0

    def emit(self, e: Emitter) -> None:
        if not self.text:
            raise ValueError("nothing to write")
        e.builder.add(e.chunk, ir.Constant(I64, self.text))


def test_kernels_that_are_linked_together_keep_their_own_code() -> None:
    kernels = KernelCache(CodeStore(None))
    target = host_target()
    many = [*KERNELS, KERNELS[0]]
    codes = kernels.link(many, [kernels.start(kernel, target) for kernel in many], target)
    assert codes[0] is codes[3]
    assert len({code.address for code in codes}) == len(KERNELS)
    assert {id(code.engine) for code in codes} == {id(codes[0].engine)}
    # what is there is used again, beside what is new
    more = replace(KERNELS[0], length=5)
    started = [kernels.start(kernel, target) for kernel in (KERNELS[1], more)]
    assert started[0] is codes[1]
    assert kernels.link([KERNELS[1], more], started, target)[0] is codes[1]


def test_threads_that_want_the_same_kernel_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels, target = KernelCache(CodeStore(None)), host_target()
    compiled: list[str] = []
    ready = threading.Barrier(4)
    compile_text = object_file.compile_text

    def count(text: str, target: Target) -> bytes:
        compiled.append(text)
        return compile_text(text, target)

    monkeypatch.setattr(object_file, "compile_text", count)

    def ask(_: int) -> Code:
        ready.wait(30)
        return kernels.compile(KERNELS[0], target)

    with ThreadPoolExecutor(4) as pool:
        codes = list(pool.map(ask, range(4)))
    assert len({code.address for code in codes}) == 1
    assert len(compiled) == 1


@pytest.mark.parametrize(("text", "error"), [("", ValueError), ("no number", RuntimeError)])
def test_a_mistake_in_a_kernel_is_reported_each_time_and_harms_no_other(
    text: str, error: type[Exception]
) -> None:
    kernels, target = KernelCache(CodeStore(None)), host_target()
    for _ in range(2):
        with pytest.raises(error):
            kernels.compile(Broken(text), target)
    assert kernels.compile(KERNELS[0], target).address


def test_a_kernel_that_memory_was_short_for_is_compiled_once_there_is_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels, target = KernelCache(CodeStore(None)), host_target()
    compile_text = object_file.compile_text

    def fail(_text: str, _target: Target) -> bytes:
        raise MemoryError

    gc.disable()  # nor may it hang on the collector, which a server calls rarely
    try:
        monkeypatch.setattr(object_file, "compile_text", fail)
        for _ in range(2):
            with pytest.raises(MemoryError):
                kernels.compile(KERNELS[0], target)
        monkeypatch.setattr(object_file, "compile_text", compile_text)
        assert kernels.compile(KERNELS[0], target).address
    finally:
        gc.enable()


def test_what_another_process_made_meanwhile_is_taken(tmp_path: Path) -> None:
    store = CodeStore(tmp_path)
    made = ObjectFile("kernel", "0" * 64)

    def write() -> str:
        store.save("0" * 64, b"what another process made")
        return "this is no IR"

    made.make(write, store, host_target())
    assert made.content() == b"what another process made"


def test_room_is_made_for_llvm_only_where_it_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr(object_file, "make_room_for_compiler", lambda: made.append(True))
    kernel, target = KERNELS[0], host_target()
    KernelCache(CodeStore(tmp_path)).compile(kernel, target)
    assert made == [True]
    KernelCache(CodeStore(tmp_path)).compile(kernel, target)
    assert made == [True]
