"""Memory footprint of a compiled program."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Memory footprint of a compiled program.

    Attributes:
        arena_bytes: bytes of intermediate tensors of one run, laid out by lifetime.
        least_bytes: most bytes of them that are in use at once; no layout takes less.
        scratch_bytes: bytes of scratch memory of one run.
        constant_bytes: bytes of packed weights.
        native: operators whose work kernels do.
        numpy: operators that numpy runs.
    """

    arena_bytes: int
    least_bytes: int
    scratch_bytes: int
    constant_bytes: int
    native: int
    numpy: int
