"""Runs one call of a kernel with every access checked."""

import ctypes
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.compiler.emit.jit import Kernel, sizes_of
from engine.compiler.emit.target import Target
from engine.compiler.memory.alignment import WORD, address_of
from engine.compiler.memory.region import Region
from engine.compiler.memory.view import Buffer, BufferKind, whole
from engine.compiler.selection import KernelCall
from engine.dtypes import Array
from tests.sanitizer.emitter import compile_checked
from tests.sanitizer.guard import READ, WRITE, WRITTEN, Fault, guard
from tests.sanitizer.shadow import permission, permit, withdraw

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class SanitizerError(AssertionError):
    """A kernel did what its call does not allow."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the buffer of an argument lies.

    Attributes:
        address: of its first element.
        shadow: of all its elements.
    """

    address: int
    shadow: Array


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
    call: KernelCall, places: Sequence[Place], target: Target, order: Order, scratch: Array | None = None
) -> None:
    """Run all chunks of a call, in random order, each as one of the threads.

    Args:
        call: what to run.
        places: where its arguments lie.
        target: what its kernel is made for.
        order: how its chunks are done.
        scratch: the scratch memory of all threads, where the kernel needs such; its own by default.

    Raises:
        SanitizerError: the kernel touched an element that is none of its regions', or read one that nothing wrote, or
            one that another chunk wrote.
        AssertionError: its regions are no parts of its arguments, or meet where it writes, or it left elements of its
            output as they were.
    """
    code = compile_checked(call.kernel, target)
    check = guard()
    check.clear()
    for place in places:
        check.add(place.address, place.shadow)
    regions = call.kernel.regions
    permissions = [
        permission(place.shadow, view, region)
        for place, view, region in zip(places, call.arguments, regions, strict=True)
    ]
    permit(permissions)
    addresses = [
        place.address + view.offset * WORD for place, view in zip(places, call.arguments, strict=True)
    ]
    if call.kernel.scratch:
        scratch = np.empty(call.kernel.scratch * order.threads, np.float32) if scratch is None else scratch
        addresses.append(address_of(scratch))
        shadow = np.zeros(scratch.size, np.int32)
        check.add(address_of(scratch), shadow)
    table = np.array([*addresses, *sizes_of(call.kernel)], np.uint64)
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
            raise SanitizerError(_describe(fault, chunk, regions, addresses))
    withdraw(permissions)


def run_on_arrays(kernel: Kernel, target: Target, arrays: Sequence[Array], threads: int) -> list[Array]:
    """Run a kernel on copies of C-contiguous float32 arrays, outputs among them; returns the arrays after the run.

    Raises:
        AssertionError: it touched what is none of the regions that it states.
    """
    copies = [array.copy() for array in arrays]
    views = tuple(whole(Buffer(BufferKind.VALUE, array.size), (array.size,)) for array in copies)
    places = [Place(address_of(array), np.full(array.size, WRITTEN, np.int32)) for array in copies]
    run_call(KernelCall(kernel, views), places, target, Order(threads, random.Random(kernel.chunks)))
    return copies


def _describe(fault: Fault, chunk: int, regions: Sequence[Region], addresses: Sequence[int]) -> str:
    """Word a fault: what was accessed, and which argument's elements are nearest."""
    what = "writes" if fault.is_write else "reads"
    distances = [
        _distance(fault, region, address) for region, address in zip(regions, addresses, strict=False)
    ]
    nearest = min(range(len(distances)), key=lambda place: distances[place][0])
    distance, where = distances[nearest]
    is_there = f"{distance} bytes outside of it" if distance else "not its to touch, or not written before"
    return (
        f"chunk {chunk} {what} {fault.lanes} elements at byte {where} of argument {nearest}, {is_there}; "
        f"{fault.count} such accesses"
    )


def _distance(fault: Fault, region: Region, address: int) -> tuple[int, int]:
    """Return how far an access lies from the hull of an argument's region, and where from its address, in bytes."""
    where = fault.address - address
    return max(-where, where + (fault.lanes - region.stop) * WORD, 0), where
