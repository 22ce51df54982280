"""Runs the code of a module of LLVM IR on threads that take turns at every access to memory, and looks for races.

A race is an access by `load` or `store` that is not ordered with another thread's access to the same word. Where there
are none, processors and compilers that reorder accesses may do nothing that these turns cannot.
"""

import operator
import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from llvmlite import ir

WORD = 2**64
Clock = dict[int, int]
"""Thread -> how far another one has seen it go."""
Turns = Generator[None, None, int]
Kernel = Callable[["Machine", int, int, int, int], Turns]
"""(machine, member, table, chunk, thread number) -> the turns of a call."""

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "udiv": operator.floordiv,
    "urem": operator.mod, "shl": operator.lshift, "lshr": operator.rshift, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor,
}  # fmt: skip
_RELATIONS = {
    "eq": operator.eq, "ne": operator.ne, "slt": operator.lt, "sgt": operator.gt, "sle": operator.le,
    "sge": operator.ge,
}  # fmt: skip


@dataclass
class _Word:
    """A word of memory.

    Attributes:
        value: what it holds.
        released: what a thread sees of others that reads it at once with what was written before it.
        written: when threads wrote it by `store`.
        read: when they read it by `load`.
        atomic: when they read or changed it all at once.
        changed: when they changed it all at once.
    """

    value: int = 0
    released: Clock = field(default_factory=dict)
    written: Clock = field(default_factory=dict)
    read: Clock = field(default_factory=dict)
    atomic: Clock = field(default_factory=dict)
    changed: Clock = field(default_factory=dict)


class Machine:
    """Memory, locks and threads.

    Args:
        module: what is run.
        kernels: functions outside of it, by address.
        choices: says whose turn it is.

    Attributes:
        memory: words by address; any other address is a fault.
    """

    def __init__(self, module: ir.Module, kernels: dict[int, Kernel], choices: random.Random) -> None:
        self._functions = {function.name: function for function in module.functions}
        self._kernels = kernels
        self._choices = choices
        self._clocks: list[Clock] = []
        self._alive: dict[int, Turns] = {}
        self._waiting: dict[int, Callable[[], bool]] = {}
        self._owners: dict[int, int] = {}
        self._asleep: set[int] = set()
        self.memory: dict[int, _Word] = {}

    def allocate(self, address: int, values: list[int]) -> None:
        """Make words that nobody knows yet."""
        for place, value in enumerate(values):
            self.memory[address + 8 * place] = _Word(value)

    def start(self, turns: Callable[[int], Turns], by: int | None = None) -> int:
        """Start a thread, perhaps by another, which it then knows all about; returns its number."""
        thread = len(self._clocks)
        self._clocks.append({} if by is None else dict(self._clocks[by]))
        self._clocks[thread][thread] = 1
        if by is not None:
            self._clocks[by][by] += 1
        self._alive[thread] = turns(thread)
        return thread

    def run(self, most: int = 1_000_000) -> None:
        """Take turns until all threads have ended; some threads now and then have none for long."""
        alive = self._alive
        held: dict[int, int] = {}
        eager = self._choices.choice((0.0, 0.5, 0.9))
        last = 0
        for turn in range(most):
            ready = [thread for thread in alive if thread not in self._waiting or self._waiting[thread]()]
            if not ready:
                raise AssertionError(f"threads {sorted(alive)} wait for each other after {turn} turns")
            active = [thread for thread in ready if held.get(thread, 0) <= turn] or ready
            if last not in active or self._choices.random() >= eager:
                last = self._choices.choice(active)
            if self._choices.random() < 0.01:
                held[last] = turn + self._choices.choice((20, 200, 2000))
            self._waiting.pop(last, None)
            try:
                next(alive[last])
            except StopIteration:
                del alive[last]
            if not alive:
                return
        raise AssertionError(f"threads {sorted(alive)} did not end in {most} turns")

    # memory

    def load(self, thread: int, address: int) -> int:
        """Return a word, which must not be written meanwhile."""
        word = self._word(address)
        self._check(thread, address, word.written)
        self._check(thread, address, word.changed)
        word.read[thread] = self._clocks[thread][thread]
        return word.value

    def store(self, thread: int, address: int, value: int) -> None:
        """Write a word, which must not be read or written meanwhile."""
        word = self._word(address)
        for others in (word.written, word.read, word.atomic):
            self._check(thread, address, others)
        word.written = {thread: self._clocks[thread][thread]}
        word.value = value

    def atomic(self, thread: int, address: int, change: Callable[[int], int] | None = None) -> int:
        """Return a word and change it, all at once."""
        word = self._word(address)
        self._check(thread, address, word.written)
        self._see(thread, word.released)
        word.atomic[thread] = self._clocks[thread][thread]
        before = word.value
        if change is not None:
            self._check(thread, address, word.read)
            word.changed[thread] = self._clocks[thread][thread]
            word.value = change(before) % WORD
            self._publish(thread, word)
        return before

    def free(self, thread: int, address: int, count: int) -> None:
        """Give words back: nobody may be about to read them."""
        for place in range(count):
            self.store(thread, address + 8 * place, -1)
            del self.memory[address + 8 * place]

    def _word(self, address: int) -> _Word:
        if address not in self.memory:
            raise AssertionError(f"an access to {address}, where nothing is")
        return self.memory[address]

    def _check(self, thread: int, address: int, others: Clock) -> None:
        seen = self._clocks[thread]
        for other, time in others.items():
            if other != thread and seen.get(other, 0) < time:
                raise AssertionError(f"threads {thread} and {other} race for the word at {address}")

    def _see(self, thread: int, clock: Clock) -> None:
        own = self._clocks[thread]
        for other, time in clock.items():
            own[other] = max(own.get(other, 0), time)

    def _publish(self, thread: int, word: _Word) -> None:
        word.released = dict(self._clocks[thread])
        self._clocks[thread][thread] += 1

    # code

    def call(self, thread: int, name: str, *arguments: int) -> Turns:
        """Run a function of the module, or one of the C library."""
        function = self._functions[name]
        if not function.blocks:
            return (yield from self._call_library(thread, name, arguments))
        values: dict[Any, int] = dict(zip(function.args, arguments, strict=True))
        before, block = None, function.blocks[0]
        while True:
            following = None
            for instruction in block.instructions:
                if isinstance(instruction, ir.instructions.PhiInstr):
                    (source,) = [value for value, origin in instruction.incomings if origin is before]
                    values[instruction] = _number(source, values)
                elif instruction.opname == "ret":
                    return _number(instruction.operands[0], values)
                elif instruction.opname == "br":
                    operands = instruction.operands
                    is_first = len(operands) == 1 or _number(operands[0], values)
                    following = operands[min(1, len(operands) - 1)] if is_first else operands[2]
                else:
                    values[instruction] = yield from self._step(thread, instruction, values)
            before, block = block, following

    def _step(self, thread: int, instruction: Any, values: dict[Any, int]) -> Turns:
        name = instruction.opname
        if name == "call":
            return (yield from self._call_instruction(thread, instruction, values))
        operands = [_number(operand, values) for operand in instruction.operands]
        if name in _ARITHMETIC:
            return int(_ARITHMETIC[name](*operands) % 2**instruction.type.width)
        if name == "icmp":
            return int(_RELATIONS[instruction.op](*map(_signed, operands)))
        if name in ("inttoptr", "ptrtoint"):
            return operands[0]
        if name == "extractvalue":
            pair: Any = operands[0]
            return int(pair[instruction.indices[0]])
        yield
        return self._access(thread, instruction, operands)

    def _access(self, thread: int, instruction: Any, operands: list[int]) -> int:
        """Do what an instruction does to memory."""
        match instruction.opname, operands:
            case "load atomic", [place]:
                return self.atomic(thread, place)
            case "load", [place]:
                return self.load(thread, place)
            case "store", [value, place]:
                self.store(thread, place, value)
                return 0
            case "atomicrmw", [place, term]:
                adds = instruction.operation == "add"
                return self.atomic(thread, place, lambda old: term + old * adds)
            case "cmpxchg", [place, old, new]:
                is_there = self._word(place).value == old
                found = self.atomic(thread, place, (lambda _: new) if is_there else None)
                return (found, is_there)  # type: ignore[return-value]
        raise NotImplementedError(str(instruction))

    def _call_instruction(self, thread: int, instruction: Any, values: dict[Any, int]) -> Turns:
        arguments = [_number(argument, values) for argument in instruction.args]
        if isinstance(instruction.callee, ir.Function):
            return (yield from self.call(thread, instruction.callee.name, *arguments))
        kernel = self._kernels[values[instruction.callee]]
        table, chunk, number = arguments
        return (yield from kernel(self, thread, table, chunk, number))

    def _call_library(self, thread: int, name: str, arguments: tuple[int, ...]) -> Turns:
        yield
        match name, arguments:
            case "pthread_mutex_lock", (mutex,):
                yield from self._lock(thread, mutex)
            case "pthread_mutex_unlock", (mutex,):
                self._unlock(thread, mutex)
            case "pthread_cond_wait", (condition, mutex):
                self._asleep.add(thread)
                self._unlock(thread, mutex)
                self._waiting[thread] = lambda: thread not in self._asleep
                yield
                yield from self._lock(thread, mutex)
            case "pthread_cond_broadcast", (condition,):
                del condition
                self._asleep.clear()
            case _:  # sched_yield, and the instructions that have the processor wait
                pass
        return 0

    def _lock(self, thread: int, mutex: int) -> Generator[None, None, None]:
        while mutex in self._owners:
            self._waiting[thread] = lambda: mutex not in self._owners
            yield
        self._owners[mutex] = thread
        self._see(thread, self._word(mutex).released)

    def _unlock(self, thread: int, mutex: int) -> None:
        assert self._owners.pop(mutex) == thread
        self._publish(thread, self._word(mutex))


def _number(operand: Any, values: dict[Any, int]) -> int:
    return int(operand.constant) if isinstance(operand, ir.Constant) else values[operand]


def _signed(value: int) -> int:
    return (value + WORD // 2) % WORD - WORD // 2
