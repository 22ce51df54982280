"""The harness itself: it runs every chunk once, and does not let a kernel out of its arrays."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from engine.compiler.emit.emitter import Emitter
from engine.compiler.emit.target import host_target
from engine.compiler.memory.region import Region, line
from tests.engine.compiler.harness import run


@dataclass(frozen=True)
class Adder:
    """Adds 1 to element `chunk + offset` of its array."""

    chunks: int
    offset: int
    scratch: int = 0

    @property
    def regions(self) -> tuple[Region, ...]:
        return (line(self.chunks, is_written=True),)

    def emit(self, e: Emitter) -> None:
        place = e.argument(0)
        old = e.load_scalar(place, e.chunk, self.offset)
        e.store_scalar(e.fadd(old, e.like(old, 1.0)), place, e.chunk, self.offset)


def test_every_chunk_runs_once() -> None:
    (result,) = run(Adder(7, 0), host_target(), np.arange(7, dtype=np.float32))
    np.testing.assert_array_equal(result, np.arange(1, 8))


@pytest.mark.parametrize("offset", [-1, 1])
def test_an_access_outside_ends_the_process(offset: int) -> None:
    script = (
        "import numpy as np; from tests.engine.compiler.test_harness import *; "
        f"run(Adder(7, {offset}), host_target(), np.zeros(7, np.float32))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, timeout=60)
    assert done.returncode < 0 or b"wrote outside" in done.stderr
