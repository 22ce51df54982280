"""Native code that runs a segment: step after step, each in chunks, on one thread or on a team.

A team shares one word, its *state*: how many chunks of the current step nobody has taken. A member takes one by
counting the state down, calls the kernel on it, and counts it as done; who does the last chunk of a step begins the
next one. So a member takes fewer chunks while its core is busy elsewhere, and none waits for one that has not woken up
yet. Members read all else about a run only between taking a chunk and counting it as done, or when theirs was the last
one of a step: the run cannot end meanwhile.

A member that finds no chunk spins for some ten microseconds, then offers its core to others, then sleeps until the
state changes.
"""

import ctypes
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from llvmlite import ir

from engine.compiler.emit.jit import Code, compile_module
from engine.compiler.emit.routine import Routine
from engine.compiler.emit.target import host_target
from engine.compiler.emit.types import IRIndex, IRValue
from engine.run.stop import NEVER

# a row of a segment's table, in words
FUNCTION, ARGUMENTS, CHUNKS, ROW_WORDS = 0, 1, 2, 3

# a team's words; what members write at the same time has cache lines of its own
STATE, DONE, RUN, SLEEPERS, INDEX, MUTEX, CONDITION, TEAM_WORDS = 0, 8, 16, 24, 25, 32, 48, 64
# what a run is about, within a team's words
ROWS, COUNT, TABLE, STAMPS, STOP, RESULT, STEP = range(RUN, RUN + 7)

ENDED, CLOSED = -1, -2
"""States between runs and after the last one."""
SPINS, YIELDS = 500, 50
"""Looks at the state before a member yields and before it sleeps: about 20 and 50 µs on current x86-64."""
CLOCK: int = getattr(time, "CLOCK_UPTIME_RAW", time.CLOCK_MONOTONIC)
"""The clock that time.monotonic and time.perf_counter read; macOS has the first one."""

NativeCall = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Runner:
    """The native functions that run segments; ctypes releases the GIL while one runs.

    Attributes:
        alone: (rows, count, table, timestamps, stop) -> steps done, on the calling thread.
        together: (rows, count, table, timestamps, stop, team) -> steps done, with a team's help.
        help: (team) -> 0, once the team is dismissed: what the other members do.
        dismiss: (team) -> 0; signals the helpers to exit.
        code: keeps the machine code alive.
    """

    alone: NativeCall
    together: NativeCall
    help: NativeCall
    dismiss: NativeCall
    code: Code


@lru_cache(maxsize=1)
def runner() -> Runner:
    """Return the native functions, compiled the first time."""
    code = compile_module(str(write_module()), "alone", host_target())

    def function(name: str, parameters: int) -> Any:
        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * parameters)
        return prototype(code.engine.get_function_address(name))

    return Runner(
        function("alone", 5), function("together", 6), function("help", 1), function("dismiss", 1), code
    )


def write_module() -> ir.Module:
    """Return the native functions as LLVM IR."""
    module = ir.Module("runner")
    _write_now(module)
    _write_must_stop(module)
    _write_alone(module)
    _write_wake(module)
    _write_wait(module)
    _write_begin(module)
    _write_finish(module)
    _write_work(module)
    _write_together(module)
    _write_help(module)
    _write_dismiss(module)
    return module


def _write_now(module: ir.Module) -> None:
    """now() -> nanoseconds of the clock that time.monotonic and time.perf_counter read."""
    r = Routine(module, "now", 0)
    found = r.local(2)  # seconds and nanoseconds
    r.call("clock_gettime", CLOCK, found)
    r.give(r.add(r.mul(r.load(found), 10**9), r.load(found, 1)))


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


def _write_alone(module: ir.Module) -> None:
    """alone(rows, count, table, timestamps, stop) -> steps done: run a segment without help."""
    r = Routine(module, "alone", 5)
    rows, count, table, timestamps, stop = r.parameters
    _take_timestamp(r, timestamps, 0)
    with r.loop(0, count) as steps:
        step = steps.index
        with r.when(r.compare("!=", r.call("must_stop", stop), 0)):
            r.give(step)
        row = _row(r, rows, step)
        with r.loop(0, r.load(row, CHUNKS)) as chunks:
            r.call_kernel(r.load(row, FUNCTION), r.add(table, r.load(row, ARGUMENTS)), chunks.index, 0)
        _take_timestamp(r, timestamps, r.add(step, 1))
    r.give(count)


def _write_wake(module: ir.Module) -> None:
    """wake(team): wake the threads that wait for a change of the state."""
    r = Routine(module, "wake", 1)
    (team,) = r.parameters
    with r.when(r.compare("==", r.read(team, SLEEPERS), 0)):
        r.give(0)
    # a member that is about to sleep holds the mutex until it does
    r.call("pthread_mutex_lock", r.add(team, 8 * MUTEX))
    r.call("pthread_cond_broadcast", r.add(team, 8 * CONDITION))
    r.call("pthread_mutex_unlock", r.add(team, 8 * MUTEX))
    r.give(0)


def _write_wait(module: ir.Module) -> None:
    """wait(team, seen): return once the state is another than was seen."""
    r = Routine(module, "wait", 2)
    team, seen = r.parameters
    for looks, pause in ((SPINS, r.relax), (YIELDS, lambda: r.call("sched_yield"))):
        with r.loop(0, looks):
            with r.when(r.compare("!=", r.read(team, STATE), seen)):
                r.give(0)
            pause()
    mutex, condition = r.add(team, 8 * MUTEX), r.add(team, 8 * CONDITION)
    r.call("pthread_mutex_lock", mutex)
    # counted before the state is read again: any later change of the state sees that a thread must be woken
    r.fetch_add(1, team, SLEEPERS)
    with r.until_left() as awake:
        r.leave(awake, r.compare("!=", r.read(team, STATE), seen))
        r.call("pthread_cond_wait", condition, mutex)
    r.fetch_add(-1, team, SLEEPERS)
    r.call("pthread_mutex_unlock", mutex)
    r.give(0)


def _write_begin(module: ir.Module) -> None:
    """begin(team, step): offer the chunks of a step."""
    r = Routine(module, "begin", 2)
    team, step = r.parameters
    chunks = r.load(_row(r, r.load(team, ROWS), step), CHUNKS)
    r.store(step, team, STEP)
    r.store(0, team, DONE)
    r.write(chunks, team, STATE)
    # a single chunk is for the member that is awake
    with r.when(r.compare(">", chunks, 1)):
        r.call("wake", team)
    r.give(0)


def _write_finish(module: ir.Module) -> None:
    """finish(team, step, thread): a step is complete; begin the next one, or end the run."""
    r = Routine(module, "finish", 3)
    team, step, thread = r.parameters
    following = r.add(step, 1)
    _take_timestamp(r, r.load(team, STAMPS), following)
    more = r.compare("<", following, r.load(team, COUNT))
    with r.when(r.both(more, r.compare("==", r.call("must_stop", r.load(team, STOP)), 0))):
        r.call("begin", team, following)
        r.give(0)
    r.store(following, team, RESULT)
    r.write(ENDED, team, STATE)
    # only the caller waits, and it is awake if this is it
    with r.when(r.compare("!=", thread, 0)):
        r.call("wake", team)
    r.give(0)


def _write_work(module: ir.Module) -> None:
    """work(team, thread, last): do chunks until the state is `last`."""
    r = Routine(module, "work", 3)
    team, thread, last = r.parameters
    with r.until_left() as done:
        state = r.read(team, STATE)
        r.leave(done, r.compare("==", state, last))
        with r.when(r.compare("<=", state, 0)):
            r.call("wait", team, state)
        with r.when(r.compare(">", state, 0)), r.when(r.replace(state, r.sub(state, 1), team, STATE)):
            step = r.load(team, STEP)
            row = _row(r, r.load(team, ROWS), step)
            chunks, arguments = r.load(row, CHUNKS), r.add(r.load(team, TABLE), r.load(row, ARGUMENTS))
            r.call_kernel(r.load(row, FUNCTION), arguments, r.sub(chunks, state), thread)
            # the run may end as soon as the chunk is counted, and its rows with it
            with r.when(r.compare("==", r.add(r.fetch_add(1, team, DONE), 1), chunks)):
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
    r.call("work", team, 0, ENDED)
    r.give(r.load(team, RESULT))


def _write_help(module: ir.Module) -> None:
    """help(team): do chunks of all runs, until dismissed."""
    r = Routine(module, "help", 1)
    (team,) = r.parameters
    r.call("work", team, r.fetch_add(1, team, INDEX), CLOSED)
    r.give(0)


def _write_dismiss(module: ir.Module) -> None:
    """dismiss(team): signal the helpers to exit; there is no run."""
    r = Routine(module, "dismiss", 1)
    (team,) = r.parameters
    r.write(CLOSED, team, STATE)
    r.call("wake", team)
    r.give(0)


def _row(r: Routine, rows: IRIndex, step: IRIndex) -> IRValue:
    """Return the address of a step's row."""
    return r.add(rows, r.mul(step, 8 * ROW_WORDS))


def _take_timestamp(r: Routine, timestamps: IRValue, place: IRIndex) -> None:
    """Record the time, if timestamps are requested."""
    with r.when(r.compare("!=", timestamps, 0)):
        r.store(r.call("now"), r.add(timestamps, r.mul(place, 8)))
