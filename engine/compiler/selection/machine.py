"""The one cost model: what this processor does in a nanosecond, and how long the work of a kernel takes it.

Times are estimates of one thread (a roofline): arithmetic and reading weights overlap, the longer of the two counts,
and the way of all else through the core's own cache comes on top. Only ratios decide.
"""

import re
from dataclasses import dataclass
from functools import cache as cached
from math import log2
from pathlib import Path

from engine.compiler.emit.target import Target
from engine.compiler.kernels.bf16_rate import bf16_speedup
from engine.precision import Precision

_CPU = Path("/sys/devices/system/cpu/cpu0")
_CPU_INFO = Path("/proc/cpuinfo")
_COMMON_CACHE, _LEAST_CACHE, _MAX_CACHE = 1 << 20, 1 << 18, 1 << 21
"""Bytes of a core's own cache where the system does not give them, and between which bounds it is believed."""
_COMMON_CLOCK = 2.6
_PORTS = 2
"""Multiply-adds of vectors that a core starts in a cycle."""
_INT8_SHARE = 2.0
"""Multiply-adds of bytes in the time of one of float32: four to a word, half as often as their operands are loaded."""
_EMULATED_INT8 = 0.5
"""The same without instructions for products of bytes."""
_TILE_CYCLES = 18
"""Cycles of the product of two matrix registers, their loads included."""
_NEAR = 20.0
"""Bytes that a core writes to its own cache, or reads from it, in a cycle."""
_SHARED, _FAR = 25.0, 12.0
"""Bytes of weights a nanosecond from the next cache, as other layers' weights replaced them since the last run; and of
those that do not fit the core's own cache, mostly from memory."""
_HIDDEN = 0.7
"""Part of the shorter of arithmetic and reading that the longer one hides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """What a kernel has to do.

    Attributes:
        multiply_adds: in vectors, lanes included that compute in vain.
        precision: of their operands.
        tile_products: products of two matrix registers.
        weights: bytes of weights, each read once.
        prefetches: whether weights are read while others are multiplied.
        moved: bytes of all else that go through the core's own cache.
    """

    multiply_adds: float = 0.0
    precision: Precision = Precision.F32
    tile_products: float = 0.0
    weights: float = 0.0
    prefetches: bool = True
    moved: float = 0.0


@dataclass(frozen=True, slots=True)
class Machine:
    """The processor that kernels are chosen for.

    Attributes:
        target: its instructions.
        cache: bytes of a core's own cache.
        clock: cycles a nanosecond, without boost.
    """

    target: Target
    cache: int = _COMMON_CACHE
    clock: float = _COMMON_CLOCK

    @property
    def chunk(self) -> int:
        """Bytes of input of a chunk: they stay in the core's own cache while all weights are applied to them."""
        return self.cache // 4

    @property
    def has_int8_tiles(self) -> bool:
        """Whether bytes can be multiplied in matrix registers."""
        return self.target.has_tiles and "+amx-int8" in self.target.features.split(",")

    def is_far(self, weight_bytes: int) -> bool:
        """Whether so many weights are no longer in the core's own cache when needed, so that prefetching pays."""
        return weight_bytes > self.chunk

    def multiply_adds(self, precision: Precision) -> float:
        """Return the multiply-adds in vectors that a core does in a nanosecond."""
        ports = _PORTS if self.target.has_fma else _PORTS / 2
        plain = ports * self.clock * self.target.lanes
        if precision is Precision.BF16:
            # a power of two, so that the choice is the same in every process, however well each measured
            return float(plain * 2.0 ** round(log2(bf16_speedup(self.target))))
        if precision is Precision.INT8:
            return plain * (_INT8_SHARE if self.target.multiplies_bytes else _EMULATED_INT8)
        return plain

    def time(self, effort: Effort) -> float:
        """Return the nanoseconds that work is expected to take one thread."""
        products = effort.tile_products * _TILE_CYCLES / self.clock
        if effort.multiply_adds:
            products += effort.multiply_adds / self.multiply_adds(effort.precision)
        reading = min(effort.weights, self.cache) / _SHARED + max(0.0, effort.weights - self.cache) / _FAR
        hidden = _HIDDEN * min(products, reading) if effort.prefetches else 0.0
        return products + reading - hidden + effort.moved / (_NEAR * self.clock)


@cached
def machine_of(target: Target) -> Machine:
    """Return this machine, as code for a target uses it."""
    return Machine(target, _own_cache(), _base_clock())


def _own_cache() -> int:
    """Return the bytes of a core's second cache: the first is too small for a layer's data, the third is shared."""
    for folder in _CPU.glob("cache/index*"):
        size = re.fullmatch(r"(\d+)K", _read(folder / "size"))
        if _read(folder / "level") == "2" and size is not None:
            return min(max(int(size[1]) << 10, _LEAST_CACHE), _MAX_CACHE)
    return _COMMON_CACHE


def _base_clock() -> float:
    """Return the cycles a nanosecond that the time stamp of x86 counts: a core's clock without boost."""
    found = re.search(r"^bogomips\s*:\s*([\d.]+)", _read(_CPU_INFO), re.MULTILINE)
    clock = round(float(found[1]) / 2000, 1) if found is not None else 0.0
    return clock if 1.0 <= clock <= 6.0 else _COMMON_CLOCK


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
