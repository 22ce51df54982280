"""Runs kernels by themselves, on memory that ends the process when a kernel reads or writes beside its arrays.

Each array gets pages of its own between two pages without access. An array cannot lie flush against both, so every
kernel runs twice: against the page before it (64-byte aligned) and against the page after it (to the byte). A third
run, by the sanitizer, proves that it touches no element but those of the regions that it states.
"""

import ctypes
import mmap
import random
import threading
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import settings

from engine.compiler.emit.jit import Kernel, cache, sizes_of
from engine.compiler.emit.target import Target
from engine.compiler.memory.region import Region
from engine.dtypes import Array
from tests.engine.compiler.emulation import WIDTHS
from tests.sanitizer.call import run_on_arrays

every_target = pytest.mark.parametrize("target", WIDTHS, ids=lambda target: target.name)
"""Runs a test once for each vector width that this machine has."""

examples_of_kernels = settings(max_examples=min(20, settings().max_examples))
"""Draws fewer examples than other tests do: most compile a kernel, and the sanitizer interprets it."""

_LIBC = ctypes.CDLL(None, use_errno=True)
_NO_ACCESS, _READ_WRITE = 0, mmap.PROT_READ | mmap.PROT_WRITE
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def run(kernel: Kernel, target: Target, *arrays: Array, threads: int = 3) -> list[Array]:
    """Run all chunks of a kernel, shuffled, on copies of C-contiguous float32 arrays.

    Args:
        kernel: what to run.
        target: what to compile it for.
        arrays: its arguments without scratch memory; outputs as well, with what they hold before the run.
        threads: threads that share the chunks.

    Returns:
        The arrays after the run, in the order given.

    What the kernel does not declare as its regions it must not need: it is NaN during the run, and must stay as it is.
    """
    code = cache.compile(kernel, target)
    given = arrays
    outside = [_outside(region, array) for region, array in zip(kernel.regions, arrays, strict=True)]
    arrays = tuple(
        np.where(mask, np.float32(np.nan), array) for mask, array in zip(outside, arrays, strict=True)
    )
    scratch = [np.full(kernel.scratch * threads, np.nan, np.float32)] if kernel.scratch else []
    first, second = (
        _run_once(kernel, code.address, [*arrays, *scratch], threads, end) for end in (False, True)
    )
    for one, other in zip(first[: len(arrays)], second, strict=False):
        np.testing.assert_array_equal(one, other, "results depend on where arrays lie or which thread runs")
    for one, other in zip(first[: len(arrays)], run_on_arrays(kernel, target, arrays, threads), strict=True):
        np.testing.assert_array_equal(one, other, "results depend on the order of chunks")
    results = []
    for region, mask, array, result in zip(kernel.regions, outside, given, first[: len(given)], strict=True):
        left_alone = mask if region.is_written else np.ones_like(mask)
        before = np.where(mask, np.float32(np.nan), array)
        np.testing.assert_array_equal(
            result[left_alone], before[left_alone], "the kernel wrote beside the regions that it declares"
        )
        results.append(np.where(mask, array, result))
    return results


def _outside(region: Region, array: Array) -> Array:
    """Return which elements of an array are no part of a region."""
    assert region.stop <= array.size, "the kernel's region ends beyond the array"
    inside = np.zeros(array.size, np.bool_)
    np.lib.stride_tricks.as_strided(inside, region.shape, region.strides)[...] = True
    return ~inside.reshape(array.shape)


def _run_once(
    kernel: Kernel, address: int, arrays: Sequence[Array], threads: int, against_end: bool
) -> list[Array]:
    places = [_Guarded(array, against_end) for array in arrays]
    arguments = np.array([*(place.address for place in places), *sizes_of(kernel)], np.uint64)
    chunks = list(range(kernel.chunks))
    random.Random(kernel.chunks + against_end).shuffle(chunks)
    function = _FUNCTION(address)

    def work(thread: int) -> None:
        for chunk in chunks[thread::threads]:
            function(arguments.ctypes.data, chunk, thread)

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [place.take() for place in places]


class _Guarded:
    """A copy of an array between two pages without access.

    Attributes:
        address: of its first element.
    """

    def __init__(self, array: Array, against_end: bool) -> None:
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        page = mmap.PAGESIZE
        self._shape = array.shape
        self._inner = max(1, -(-array.nbytes // page)) * page
        self._map = mmap.mmap(-1, self._inner + 2 * page)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._fences = (base, base + page + self._inner)
        self._offset = page + (self._inner - array.nbytes if against_end else 0)
        self.address = base + self._offset
        self._view(np.uint8, page, self._inner)[...] = 0xA5
        self._view(np.float32, self._offset, array.size)[...] = array.ravel()
        for fence in self._fences:
            _protect(fence, _NO_ACCESS)

    def take(self) -> Array:
        """Return the array as it is now, and let its memory go."""
        for fence in self._fences:
            _protect(fence, _READ_WRITE)
        values = self._view(np.float32, self._offset, int(np.prod(self._shape))).reshape(self._shape).copy()
        around = self._view(np.uint8, mmap.PAGESIZE, self._inner).copy()
        start = self._offset - mmap.PAGESIZE
        around[start : start + values.nbytes] = 0xA5
        assert (around == 0xA5).all(), "the kernel wrote outside its array"
        return values

    def _view(self, dtype: type, offset: int, count: int) -> Array:
        return np.frombuffer(self._map, dtype, count, offset)


def _protect(address: int, protection: int) -> None:
    if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(mmap.PAGESIZE), protection):
        raise OSError(ctypes.get_errno(), "mprotect failed")
