"""Native code that runs a segment: step after step, each in chunks, on one thread or on a team (work stealing).

A team shares one word, its *state*, which counts the steps of all its runs. The chunks of a step are divided evenly:
each member has a range of them, at the same place in every step, so that what one step wrote into the cache of a core
is read by that core in the next one, and weights stay in its cache from run to run. Every member does the same: takes a
chunk of its range, or of another's once its own has none, by counting the range down, calls the kernel on it, and
counts it as done; who does the last chunk of a step moves the state on to the next one. So no member waits for one that
has not woken up yet: it joins at the current step of the others. A range contains its state, so that no chunk of a
finished step is taken. Members read all else about a run only between taking a chunk and counting it as done, or when
theirs was the last one of a step: the run cannot end meanwhile.

A member that finds no chunk spins for some ten microseconds, then offers its core to others, then sleeps until the
state changes.
"""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from engine.compiler.emit.jit import Code, compile_module
from engine.compiler.emit.routine import MachineWord, Routine
from engine.compiler.emit.target import host_target
from engine.compiler.emit.types import IRValue
from engine.compiler.threads import libc
from engine.run.stop import NEVER

# a row of a segment's table, in words
FUNCTION, ARGUMENTS, CHUNKS, ROW_WORDS = 0, 1, 2, 3

# a team's words; what members write at the same time has cache lines of its own
STATE, DONE, RUN, SLEEPERS, INDEX, MUTEX = 0, 8, 16, 24, 25, 32
CONDITION = MUTEX + libc.MUTEX_BYTES // 8
RANGES, RANGE_WORDS = CONDITION + libc.CONDITION_BYTES // 8, 8
# what a run is about, within a team's words
ROWS, COUNT, TABLE, STAMPS, STOP, RESULT, STEP, EPOCH = range(RUN, RUN + 8)
MEMBERS = INDEX + 1

CHUNK_BITS = 31
"""Bits of a range that count the chunks left; those above are the state that it belongs to."""
STATE_BITS = 64 - CHUNK_BITS
ENDED, CLOSED = 1 << 61, 1 << 62
"""States between runs and after the last one, which no step has."""
SPINS, YIELDS = 500, 50
"""Looks at the state before a member yields and before it sleeps: about 20 and 50 µs on current x86-64."""

NativeCall = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Runner:
    """The native functions that run segments; ctypes releases the GIL while one runs.

    Attributes:
        alone: (rows, count, table, timestamps, stop) -> steps done, on the calling thread.
        together: (rows, count, table, timestamps, stop, team) -> steps done, with a team's help.
        dismiss: (team) -> 0; signals the helpers to exit.
        helper: address of the function that a helper's thread runs.
        code: keeps the machine code alive.
    """

    alone: NativeCall
    together: NativeCall
    dismiss: NativeCall
    helper: int
    code: Code


@lru_cache(maxsize=1)
def runner() -> Runner:
    """Return the native functions, compiled the first time."""
    code = compile_module(str(write_module()), "alone", host_target())

    def function(name: str, parameters: int) -> Any:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * parameters)
        return prototype(code.engine.get_function_address(name))

    helper = code.engine.get_function_address("helper")
    return Runner(function("alone", 5), function("together", 6), function("dismiss", 1), helper, code)


def write_module() -> ir.Module:
    """Return the native functions as LLVM IR."""
    module = ir.Module("runner")
    _write_now(module)
    _write_must_stop(module)
    _write_do_chunk(module)
    _write_alone(module)
    _write_wake(module)
    _write_wait(module)
    _write_end_of_range(module)
    _write_take(module)
    _write_begin(module)
    _write_finish(module)
    _write_work(module)
    _write_together(module)
    _write_helper(module)
    _write_dismiss(module)
    return module


def _write_now(module: ir.Module) -> None:
    """now() -> nanoseconds of the clock that time.monotonic and time.perf_counter read."""
    r = Routine(module, "now", 0)
    clock = libc.address_of("clock_gettime")
    if clock is None:
        llvm.add_symbol("python_clock", libc.python_clock())
        r.give(r.call("python_clock"))
        return
    llvm.add_symbol("clock_gettime", clock)
    time = r.local(2)  # seconds and nanoseconds
    r.call("clock_gettime", libc.clock_id(), time)
    r.give(r.add(r.mul(r.load(time), 10**9), r.load(time, 1)))


def _write_must_stop(module: ir.Module) -> None:
    """must_stop(stop) -> whether a StopSignal, or none, asks to end the run."""
    r = Routine(module, "must_stop", 1)
    (stop,) = r.parameters
    with r.when(r.compare("==", stop, 0)):
        r.give(0)
    with r.when(r.compare("!=", r.read(stop), 0)):
        r.give(1)
    deadline = r.load(stop, 1)
    with r.when(r.compare("==", deadline, NEVER)):
        r.give(0)
    with r.when(r.compare("<", r.call("now"), deadline)):
        r.give(0)
    r.give(1)


def _write_do_chunk(module: ir.Module) -> None:
    """do_chunk(row, table, chunk, thread): call a step's kernel on one chunk."""
    r = Routine(module, "do_chunk", 4)
    row, table, chunk, thread = r.parameters
    r.call_kernel(r.load(row, FUNCTION), r.add(table, r.load(row, ARGUMENTS)), chunk, thread)
    r.give(0)


def _write_alone(module: ir.Module) -> None:
    """alone(rows, count, table, timestamps, stop) -> steps done: run a segment without help."""
    r = Routine(module, "alone", 5)
    rows, count, table, timestamps, stop = r.parameters
    _take_timestamp(r, timestamps, 0)
    with r.count(count) as step:
        with r.when(r.compare("!=", r.call("must_stop", stop), 0)):
            r.give(step)
        row = _row(r, rows, step)
        with r.count(r.load(row, CHUNKS)) as chunk:
            r.call("do_chunk", row, table, chunk, 0)
        _take_timestamp(r, timestamps, r.add(step, 1))
    r.give(count)


def _write_wake(module: ir.Module) -> None:
    """wake(team): wake the threads that wait for a change of the state."""
    r = Routine(module, "wake", 1)
    (team,) = r.parameters
    with r.when(r.compare("==", r.read(team, SLEEPERS), 0)):
        r.give(0)
    # a member that is about to sleep holds the mutex until it does
    _call_threads(r, "pthread_mutex_lock", r.add(team, 8 * MUTEX))
    _call_threads(r, "pthread_cond_broadcast", r.add(team, 8 * CONDITION))
    _call_threads(r, "pthread_mutex_unlock", r.add(team, 8 * MUTEX))
    r.give(0)


def _write_wait(module: ir.Module) -> None:
    """wait(team, seen): return once the state is another than was seen."""
    r = Routine(module, "wait", 2)
    team, seen = r.parameters
    with r.count(SPINS):
        _return_when_changed(r, team, seen)
        r.relax()
    with r.count(YIELDS):
        _return_when_changed(r, team, seen)
        _call_threads(r, "sched_yield")
    mutex, condition = r.add(team, 8 * MUTEX), r.add(team, 8 * CONDITION)
    _call_threads(r, "pthread_mutex_lock", mutex)
    # counted before the state is read again: any later change of the state sees that a thread must be woken
    r.fetch_add(1, team, SLEEPERS)
    with r.forever() as asleep:
        asleep.leave_when(r.compare("!=", r.read(team, STATE), seen))
        _call_threads(r, "pthread_cond_wait", condition, mutex)
    r.fetch_add(-1, team, SLEEPERS)
    _call_threads(r, "pthread_mutex_unlock", mutex)
    r.give(0)


def _write_finish(module: ir.Module) -> None:
    """finish(team, step, thread): a step is complete; record the time and start the next step, if any."""
    r = Routine(module, "finish", 3)
    team, step, thread = r.parameters
    following = r.add(step, 1)
    _take_timestamp(r, r.load(team, STAMPS), following)
    with r.when(r.compare("==", following, r.load(team, COUNT))):
        _end(r, team, following, thread)
    with r.when(r.compare("!=", r.call("must_stop", r.load(team, STOP)), 0)):
        _end(r, team, following, thread)
    chunks = r.call("begin", team, following)
    # a single chunk is for the member that is awake
    with r.when(r.compare(">", chunks, 1)):
        r.call("wake", team)
    r.give(0)


def _write_end_of_range(module: ir.Module) -> None:
    """end_of_range(chunks, members, member) -> the chunk after a member's last one; ranges differ by one at most."""
    r = Routine(module, "end_of_range", 3)
    chunks, members, member = r.parameters
    r.give(r.divide(r.add(r.mul(r.add(member, 1), chunks), r.sub(members, 1)), members))


def _write_begin(module: ir.Module) -> None:
    """begin(team, step) -> its chunks: divide the chunks of a step among the members, then offer them."""
    r = Routine(module, "begin", 2)
    team, step = r.parameters
    chunks, members = r.load(_row(r, r.load(team, ROWS), step), CHUNKS), r.load(team, MEMBERS)
    state = r.low_bits(r.add(r.load(team, EPOCH), 1), STATE_BITS)
    r.store(state, team, EPOCH)
    r.store(step, team, STEP)
    r.store(0, team, DONE)
    with r.count(members) as member:
        start = r.call("end_of_range", chunks, members, r.sub(member, 1))
        left = r.sub(r.call("end_of_range", chunks, members, member), start)
        r.write(r.add(r.shift_left(state, CHUNK_BITS), left), _range(r, team, member))
    r.write(state, team, STATE)
    r.give(chunks)


def _write_take(module: ir.Module) -> None:
    """take(team, thread, state) -> a chunk of a state's step, from the thread's own range first; -1 where none is."""
    r = Routine(module, "take", 3)
    team, thread, state = r.parameters
    members = r.read(team, MEMBERS)  # 0 until it is known how many there are: a helper may be early
    with r.count(members) as hop:
        member = r.remainder(r.add(thread, hop), members)
        place = _range(r, team, member)
        with r.forever() as loop:
            word = r.read(place)
            left = r.low_bits(word, CHUNK_BITS)
            loop.leave_when(r.compare("==", left, 0))
            loop.leave_when(r.compare("!=", r.shift_right(word, CHUNK_BITS), state))
            with r.when(r.replace(word, r.sub(word, 1), place)):
                chunks = r.load(_row(r, r.load(team, ROWS), r.load(team, STEP)), CHUNKS)
                r.give(r.sub(r.call("end_of_range", chunks, members, member), left))
    r.give(-1)


def _write_work(module: ir.Module) -> None:
    """work(team, thread, last): do chunks until the state is `last`."""
    r = Routine(module, "work", 3)
    team, thread, last = r.parameters
    with r.forever() as work:
        state = r.read(team, STATE)
        work.leave_when(r.compare("==", state, last))
        chunk = r.call("take", team, thread, state)
        with r.when(r.compare("<", chunk, 0)):
            r.call("wait", team, state)
        work.again_when(r.compare("<", chunk, 0))
        step = r.load(team, STEP)
        row = _row(r, r.load(team, ROWS), step)
        chunks = r.load(row, CHUNKS)
        r.call("do_chunk", row, r.load(team, TABLE), chunk, thread)
        # the run may end as soon as the chunk is counted, and its rows with it
        done = r.add(r.fetch_add(1, team, DONE), 1)
        with r.when(r.compare("==", done, chunks)):
            r.call("finish", team, step, thread)
    r.give(0)


def _write_together(module: ir.Module) -> None:
    """together(rows, count, table, timestamps, stop, team) -> steps done: run a segment with a team's help."""
    r = Routine(module, "together", 6)
    rows, count, table, timestamps, stop, team = r.parameters
    _take_timestamp(r, timestamps, 0)
    with r.when(r.compare("!=", r.call("must_stop", stop), 0)):
        r.give(0)
    for place, value in ((ROWS, rows), (COUNT, count), (TABLE, table), (STAMPS, timestamps), (STOP, stop)):
        r.store(value, team, place)
    r.call("begin", team, 0)
    # even where the first step has a single chunk: helpers take their time to wake, and are awake for the next
    r.call("wake", team)
    r.call("work", team, 0, ENDED)
    r.give(r.load(team, RESULT))


def _write_helper(module: ir.Module) -> None:
    """helper(team): what a helper's thread does until it is dismissed."""
    r = Routine(module, "helper", 1)
    (team,) = r.parameters
    thread = r.fetch_add(1, team, INDEX)
    r.call("work", team, thread, CLOSED)
    r.give(0)


def _write_dismiss(module: ir.Module) -> None:
    """dismiss(team): signal the helpers to exit; there is no run."""
    r = Routine(module, "dismiss", 1)
    (team,) = r.parameters
    r.write(CLOSED, team, STATE)
    r.call("wake", team)
    r.give(0)


def _row(r: Routine, rows: MachineWord, step: MachineWord) -> IRValue:
    """Return the address of a step's row."""
    return r.add(rows, r.mul(step, 8 * ROW_WORDS))


def _take_timestamp(r: Routine, timestamps: IRValue, place: MachineWord) -> None:
    """Record the time, if timestamps are requested."""
    with r.when(r.compare("!=", timestamps, 0)):
        r.store(r.call("now"), r.add(timestamps, r.mul(place, 8)))


def _range(r: Routine, team: MachineWord, member: MachineWord) -> IRValue:
    """Return the address of a member's range."""
    return r.add(r.add(team, 8 * RANGES), r.mul(member, 8 * RANGE_WORDS))


def _end(r: Routine, team: IRValue, done: IRValue, thread: IRValue) -> None:
    """End the run and return."""
    r.store(done, team, RESULT)
    r.write(ENDED, team, STATE)
    # only the caller waits, and it is awake if this is it
    with r.when(r.compare("!=", thread, 0)):
        r.call("wake", team)
    r.give(0)


def _return_when_changed(r: Routine, team: IRValue, seen: IRValue) -> None:
    with r.when(r.compare("!=", r.read(team, STATE), seen)):
        r.give(0)


def _call_threads(r: Routine, name: str, *arguments: MachineWord) -> None:
    llvm.add_symbol(name, libc.address_of(name) or 0)
    r.call(name, *arguments)
