"""The native functions that instrumented kernels ask before each access.

There is one for reading and one for writing 1 to 16 elements, and one of each with a runtime count. Each takes an
address and gives back the address to use: the same, or, where the access is not allowed, that of memory which nobody
needs. So the kernel runs on to its end, and the first fault waits to be read. `shadow.py` says what the words of the
shadow mean.
"""

from dataclasses import dataclass
from functools import lru_cache

import llvmlite.binding as llvm
import numpy as np

from engine.compiler.emit.jit import Code, compile_module
from engine.compiler.emit.target import host_target
from engine.compiler.memory.alignment import WORD, address_of
from engine.dtypes import Array

READ, WRITE, WRITTEN, GIVEN = 1, 2, 4, 8
"""Bits of a shadow's word: the call may read the element; it may write it; this run has written it; it is one of the
argument that is looked at."""
OWNER_SHIFT = 4
"""The bits above: which chunk of the call wrote the element, counted from 1; 0 for none."""
MAX_LANES = 16

_TAKEN, _OWNER, _FAULTS, _ADDRESS, _IS_WRITE, _LANES, _REGIONS = range(7)
_REGION_WORDS = 3
_MAX_REGIONS = 64

_TEXT = """
define ptr @sanitizer_{kind}_{lanes}(ptr %place) {{
entry:
  %address = ptrtoint ptr %place to i64
  %taken = load i64, ptr inttoptr (i64 {taken} to ptr)
  %owner = load i32, ptr inttoptr (i64 {owner} to ptr)
  %first = insertelement <{lanes} x i32> undef, i32 %owner, i32 0
  %owners = shufflevector <{lanes} x i32> %first, <{lanes} x i32> undef, <{lanes} x i32> zeroinitializer
  br label %loop
loop:
  %region = phi i64 [0, %entry], [%next, %other]
  %more = icmp ult i64 %region, %taken
  br i1 %more, label %look, label %fault
look:
  %row = getelementptr [3 x i64], ptr inttoptr (i64 {regions} to ptr), i64 %region
  %base = load i64, ptr %row
  %size_place = getelementptr i64, ptr %row, i64 1
  %size = load i64, ptr %size_place
  %distance = sub i64 %address, %base
  %end = add i64 %distance, {bytes}
  %after = icmp sge i64 %distance, 0
  %before = icmp sle i64 %end, %size
  %rest = and i64 %distance, 3
  %aligned = icmp eq i64 %rest, 0
  %inside = and i1 %after, %before
  %near = and i1 %inside, %aligned
  br i1 %near, label %judge, label %other
judge:
  %shadow_place = getelementptr i64, ptr %row, i64 2
  %shadow = load ptr, ptr %shadow_place
  %words_place = getelementptr i8, ptr %shadow, i64 %distance
  %words = load <{lanes} x i32>, ptr %words_place, align 4
  %flags = and <{lanes} x i32> %words, {needed}
  %may = icmp eq <{lanes} x i32> %flags, {needed}
  %marks = and <{lanes} x i32> %words, {owner_mask}
  %free = icmp eq <{lanes} x i32> %marks, zeroinitializer
  %own = icmp eq <{lanes} x i32> %marks, %owners
  %ours = or <{lanes} x i1> %free, %own
  %good = and <{lanes} x i1> %may, %ours
  %all = bitcast <{lanes} x i1> %good to i{lanes}
  %fine = icmp eq i{lanes} %all, -1
  br i1 %fine, label %done, label %other
other:
  %next = add i64 %region, 1
  br label %loop
done:
{mark}
  ret ptr %place
fault:
  %faults = load i64, ptr inttoptr (i64 {faults} to ptr)
  %more_faults = add i64 %faults, 1
  store i64 %more_faults, ptr inttoptr (i64 {faults} to ptr)
  %is_first = icmp eq i64 %faults, 0
  br i1 %is_first, label %note, label %skip
note:
  store i64 %address, ptr inttoptr (i64 {fault_address} to ptr)
  store i64 {is_write}, ptr inttoptr (i64 {fault_is_write} to ptr)
  store i64 {lanes}, ptr inttoptr (i64 {fault_lanes} to ptr)
  br label %skip
skip:
  ret ptr inttoptr (i64 {nowhere} to ptr)
}}
"""
_MARK = """
  %written = or <{lanes} x i32> %owners, {written}
  %kept = and <{lanes} x i32> %words, {flags}
  %marked = or <{lanes} x i32> %kept, %written
  store <{lanes} x i32> %marked, ptr %words_place, align 4
"""
_CHOICE = """
define ptr @{name}(ptr %place, i64 %lanes) {{
entry:
  switch i64 %lanes, label %none [{cases}]
none:
  ret ptr %place
{calls}
}}
"""
_CALL = """
lanes{lanes}:
  %place{lanes} = call ptr @{name}(ptr %place)
  ret ptr %place{lanes}
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """An access that was not allowed.

    Attributes:
        address: of its first element.
        lanes: how many elements it was about.
        is_write: whether it was to write them.
        count: how many such accesses there were in all.
    """

    address: int
    lanes: int
    is_write: bool
    count: int


class Guard:
    """What the native functions know of the call at work: regions of memory and their shadows.

    There is one in a process, and one call at work at a time.
    """

    def __init__(self) -> None:
        self._state = np.zeros(_REGIONS + _REGION_WORDS * _MAX_REGIONS, np.int64)
        self._nowhere = np.zeros(2 * MAX_LANES, np.float32)
        self._code = self._compile()
        self._shadows: list[Array] = []

    def clear(self) -> None:
        """Forget all regions and faults."""
        self._state[:] = 0
        self._shadows = []

    def add(self, address: int, shadow: Array) -> None:
        """Let kernels reach the memory at an address, as far as its shadow, one word an element, allows."""
        place = _REGIONS + _REGION_WORDS * len(self._shadows)
        self._shadows.append(shadow)
        self._state[place : place + _REGION_WORDS] = address, WORD * shadow.size, address_of(shadow)
        self._state[_TAKEN] = len(self._shadows)

    def begin(self, chunk: int) -> None:
        """Say which chunk is at work from now on."""
        self._state[_OWNER] = (chunk + 1) << OWNER_SHIFT

    def fault(self) -> Fault | None:
        """Return the first access that was not allowed."""
        count, address, is_write, lanes = self._state[_FAULTS:_REGIONS].tolist()
        return Fault(address, lanes, bool(is_write), count) if count else None

    def _compile(self) -> Code:
        kinds, counts = ("read", "write"), range(1, MAX_LANES + 1)
        functions = [self._function(kind, lanes) for kind in kinds for lanes in counts]
        text = "".join([*functions, *map(_choice, kinds)])
        code = compile_module(text, name_of("read", 1), host_target())
        for name in (name_of(kind, lanes) for kind in kinds for lanes in (None, *counts)):
            llvm.add_symbol(name, code.engine.get_function_address(name))
        return code

    def _function(self, kind: str, lanes: int) -> str:
        def words(value: int) -> str:
            return f"<{', '.join([f'i32 {value}'] * lanes)}>"

        state = address_of(self._state)
        mark = _MARK.format(lanes=lanes, written=words(WRITTEN), flags=words(READ | WRITE | WRITTEN))
        return _TEXT.format(
            kind=kind,
            lanes=lanes,
            bytes=lanes * WORD,
            needed=words(WRITE if kind == "write" else READ | WRITTEN),
            owner_mask=words(-1 << OWNER_SHIFT),
            mark=mark if kind == "write" else "",
            is_write=int(kind == "write"),
            nowhere=address_of(self._nowhere),
            **{
                name: state + 8 * place
                for name, place in (
                    ("taken", _TAKEN),
                    ("owner", _OWNER),
                    ("faults", _FAULTS),
                    ("fault_address", _ADDRESS),
                    ("fault_is_write", _IS_WRITE),
                    ("fault_lanes", _LANES),
                    ("regions", _REGIONS),
                )
            },
        )


def name_of(kind: str, lanes: int | None) -> str:
    """Return the name of the function that is asked before so many elements are read or written.

    None for the one with a runtime count: 1 to `MAX_LANES`, or none at all, which may always be accessed.
    """
    return f"sanitizer_{kind}_{lanes or 'some'}"


def _choice(kind: str) -> str:
    """Return the function with a runtime number of elements."""
    counts = range(1, MAX_LANES + 1)
    cases = " ".join(f"i64 {lanes}, label %lanes{lanes}" for lanes in counts)
    calls = "".join(_CALL.format(name=name_of(kind, lanes), lanes=lanes) for lanes in counts)
    return _CHOICE.format(name=name_of(kind, None), cases=cases, calls=calls)


@lru_cache(maxsize=1)
def guard() -> Guard:
    """Return the process's guard, its functions known to the linker."""
    return Guard()
