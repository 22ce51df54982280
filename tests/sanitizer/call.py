"""Runs one call of a kernel with every access checked."""

import ctypes
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.memory import WORD, address_of
from engine.compiler.selection import Call
from engine.compiler.target import Target
from engine.dtypes import Array
from tests.sanitizer.emitter import compile_checked
from tests.sanitizer.guard import READ, WRITE, WRITTEN, Fault, guard
from tests.sanitizer.shadow import Part, parts_of, permit, withdraw

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class SanitizerError(AssertionError):
    """A kernel did what its call does not allow."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an argument lies.

    Attributes:
        address: of its buffer.
        shadow: of the buffer.
        offset: elements of the buffer before the argument's first one.
    """

    address: int
    shadow: Array
    offset: int


@dataclass(frozen=True, slots=True)
class Order:
    """How the chunks of calls are done.

    Attributes:
        threads: threads that share them.
        random: puts them in order and deals them out.
    """

    threads: int
    random: random.Random


def run_call(
    call: Call, places: Sequence[Place], target: Target, order: Order, scratch: Array | None = None
) -> None:
    """Run all chunks of a call, in random order, each as one of the threads.

    Args:
        call: what to run.
        places: where its arguments lie.
        target: what its kernel is made for.
        order: how its chunks are done.
        scratch: the scratch memory of all threads, where the kernel needs such; its own by default.

    Raises:
        SanitizerError: the kernel touched an element that its call does not give it, or read one that nothing wrote,
            or one that another chunk wrote, or left elements of its output as they were.
    """
    code = compile_checked(call.kernel, target)
    check = guard()
    check.clear()
    for place in places:
        check.add(place.address, place.shadow)
    words = [
        (part, part.of(place.shadow, place.offset))
        for part, place in zip(parts_of(call), places, strict=True)
    ]
    permit(words)
    addresses = [place.address + place.offset * WORD for place in places]
    if call.kernel.scratch:
        scratch = np.empty(call.kernel.scratch * order.threads, np.float32) if scratch is None else scratch
        addresses.append(address_of(scratch))
        shadow = np.zeros(scratch.size, np.int32)
        check.add(address_of(scratch), shadow)
    table = np.array(addresses, np.uint64)
    chunks = list(range(call.kernel.chunks))
    order.random.shuffle(chunks)
    for chunk in chunks:
        thread = order.random.randrange(order.threads)
        if call.kernel.scratch and scratch is not None:
            scratch[...] = np.nan  # nothing that a chunk left there may reach another
            shadow[...] = 0
            shadow[thread * call.kernel.scratch :][: call.kernel.scratch] = READ | WRITE | WRITTEN
        check.begin(chunk)
        _FUNCTION(code.address)(address_of(table), chunk, thread)
        fault = check.fault()
        if fault is not None:
            raise SanitizerError(_describe(fault, chunk, call, places))
    _check_results(words)
    withdraw(shadow for _, shadow in words)


def _check_results(words: Sequence[tuple[Part, Array]]) -> None:
    for part, shadow in words:
        if part.is_written and not (shadow & WRITTEN).all():
            raise SanitizerError("elements of its output were left as they were")


def _describe(fault: Fault, chunk: int, call: Call, places: Sequence[Place]) -> str:
    """Word a fault: what was accessed, and which argument's elements are nearest."""
    what = "writes" if fault.is_write else "reads"
    distances = [_distance(fault, part, place) for part, place in zip(parts_of(call), places, strict=True)]
    nearest = min(range(len(distances)), key=lambda place: distances[place][0])
    distance, where = distances[nearest]
    is_there = f"{distance} bytes outside of it" if distance else "not its to touch, or not written before"
    return (
        f"chunk {chunk} {what} {fault.lanes} elements at byte {where} of argument {nearest}, {is_there}; "
        f"{fault.count} such accesses"
    )


def _distance(fault: Fault, part: Part, place: Place) -> tuple[int, int]:
    """Return how far an access lies from an argument's hull, and where from its first element, in bytes."""
    reach = sum((extent - 1) * stride for extent, stride in zip(part.shape, part.strides, strict=True))
    where = fault.address - place.address - place.offset * WORD
    return max(-where, where + (fault.lanes - 1 - reach) * WORD, 0), where
