"""Progress of compilation for a graph's shapes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation:
    """Numbers of compiled and waiting programs of a graph.

    Attributes:
        compiled: programs compiled so far, including refused and evicted ones.
        waiting: combinations of input shapes that wait for the compiler or for room in the cache.
        not_compiled: recent combinations that are too rare, or too fast in numpy, to be compiled.
    """

    compiled: int = 0
    waiting: int = 0
    not_compiled: int = 0
