"""Writes kernels that ask the guard before each access."""

import re
from collections.abc import Callable
from functools import lru_cache

from llvmlite import ir

from engine.compiler.emit import object_file
from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.jit import Code, Kernel, general
from engine.compiler.emit.object_file import link
from engine.compiler.emit.target import Target
from engine.compiler.emit.types import ENTRY, I64, POINTER, IRIndex, IRValue, TileShape
from tests.sanitizer.guard import guard, name_of

_ACCESS = re.compile(r"= load (?!ptr)|^\s*store |\bcall .*@\"?llvm\.masked\.", re.MULTILINE)
_POINTERS = re.compile(r"= load ptr")


class CheckedEmitter(Emitter):
    """A kernel that is being written, each of its accesses preceded by a question.

    Constants that the kernel brings along and its stack are not asked for: their places are known when it is written.
    """

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._accesses = self._addresses = 0

    def finish(self) -> str:
        """End the kernel; returns its module as text.

        Raises:
            AssertionError: the kernel accesses memory in a way that nothing here asks for.
        """
        text = super().finish()
        body = text[text.index("define") :]
        found = len(_ACCESS.findall(body)), len(_POINTERS.findall(body))
        assert found == (self._accesses, self._addresses), f"accesses without a question: {found}"
        return text

    def argument(self, place: int) -> IRValue:
        self._addresses += 1
        return super().argument(place)

    def size(self, place: int) -> IRValue:
        self._accesses += 1
        return super().size(place)

    def load(
        self, base: IRValue, *offset: IRIndex, count: IRIndex | None = None, rest: float = 0.0
    ) -> IRValue:
        place = self._asked("read", self.address(base, *offset), self.lanes if count is None else count)
        return super().load(place, count=count, rest=rest)

    def store(self, value: IRValue, base: IRValue, *offset: IRIndex, count: IRIndex | None = None) -> None:
        place = self._asked("write", self.address(base, *offset), self.lanes if count is None else count)
        super().store(value, place, count=count)

    def load_scalar(self, base: IRValue, *offset: IRIndex) -> IRValue:
        return super().load_scalar(self._asked("read", self.address(base, *offset), 1))

    def store_scalar(self, value: IRValue, base: IRValue, *offset: IRIndex) -> None:
        super().store_scalar(value, self._asked("write", self.address(base, *offset), 1))

    def load_words(self, base: IRValue, *offset: IRIndex, count: int) -> IRValue:
        return super().load_words(self._asked("read", self.address(base, *offset), count), count=count)

    def store_words(self, value: IRValue, base: IRValue, *offset: IRIndex) -> None:
        super().store_words(value, self._asked("write", self.address(base, *offset), value.type.count))

    def load_index(self, table: IRValue, place: IRIndex) -> IRValue:
        assert isinstance(_root(table), ir.GlobalVariable), "an index that the kernel does not bring along"
        self._accesses += 1
        return super().load_index(table, place)

    def tile_load(self, tile: int, base: IRValue, step: int) -> None:
        self._ask_rows("read", self.tile_shapes[tile], base, step)
        super().tile_load(tile, base, step)

    def tile_store(self, tile: int, base: IRValue, step: int) -> None:
        self._ask_rows("write", self.tile_shapes[tile], base, step)
        super().tile_store(tile, base, step)

    def _ask_rows(self, kind: str, shape: TileShape, base: IRValue, step: int) -> None:
        """Ask for the rows of a matrix register; where one may not be touched, the fault is noted all the same."""
        for row in range(shape.rows):
            self._asked(kind, self.address(base, row * step), shape.words)
            self._accesses -= 1  # tiles are moved by calls that are not counted

    def _asked(self, kind: str, place: IRValue, lanes: IRIndex) -> IRValue:
        """Return the address that may be used for an access."""
        self._accesses += 1
        if not isinstance(lanes, int):
            function = self.intrinsic(name_of(kind, None), POINTER, [POINTER, I64])
            return self.builder.call(function, [place, self.minimum(lanes, self.lanes)])
        if isinstance(_root(place), ir.GlobalVariable | ir.AllocaInstr) or not lanes:
            return place
        function = self.intrinsic(name_of(kind, lanes), POINTER, [POINTER])
        return self.builder.call(function, [place])


def _root(address: IRValue) -> IRValue:
    """Return what an address was made of."""
    while isinstance(address, ir.GEPInstr):
        address = address.pointer
    return address


def compile_checked(kernel: Kernel, target: Target) -> Code:
    """Return a kernel's instrumented code; the last ones are kept."""
    guard()
    kernel = general(kernel)
    return _compiled(kernel, type(kernel).emit, target)


@lru_cache(maxsize=64)
def _compiled(kernel: Kernel, emit: Callable[[Kernel, Emitter], None], target: Target) -> Code:
    """Return what a kernel's own function writes, which tests replace to plant mistakes."""
    emitter = CheckedEmitter(target)
    emit(kernel, emitter)
    # every access is asked for, however fast the code is
    engine = link([object_file.compile_text(emitter.finish(), target, effort=0)], target)
    return Code(engine.get_function_address(ENTRY), engine)
