"""What LLVM may take is free before it is called, where the memory of the process is limited."""

import subprocess
import sys

import pytest

from engine.compiler.memory import memory_guard
from engine.compiler.memory.alignment import aligned_empty
from engine.compiler.memory.memory_guard import RESIDENT_BYTES, check_memory, watch_memory
from tests.service.server.process import ROOT

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to RLIMIT_AS")

SHORT_OF_MEMORY = """
import resource
from pathlib import Path
import numpy as np
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, resource.RLIM_INFINITY))
from engine import RuntimeGraph, TensorSpec
graph = RuntimeGraph("models/digits/digits.pnnx.param", "models/digits/digits.pnnx.bin", threads=1)
graph.build()
known = np.random.default_rng(0).random((2, 1, 28, 28), np.float32)
before = graph.forward(known)
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20), resource.RLIM_INFINITY))
try:
    graph.forward(np.zeros((5, 1, 28, 28), np.float32))
except MemoryError as error:
    print(error)
rows = np.repeat(known, 3, axis=0)
(output,) = graph.run(rows, waits=False).outputs
assert np.allclose(output[::3], before[0], atol=1e-4)
assert (graph.forward(known)[0] == before[0]).all()
resource.setrlimit(resource.RLIMIT_AS, (16 << 30, resource.RLIM_INFINITY))
assert np.allclose(graph.forward(rows)[0], output, atol=1e-4)
print(len(graph.verification.refused), graph.is_compiled([TensorSpec(rows.shape, rows.dtype)]))
"""


@LINUX
def test_a_program_that_lacks_memory_to_be_compiled_is_compiled_later() -> None:
    command = [sys.executable, "-c", SHORT_OF_MEMORY]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == ["less than 192 MiB are free", "0 True"]


def test_memory_that_is_not_there_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    check_memory()
    monkeypatch.setattr(memory_guard, "COMPILER_BYTES", 1 << 52)
    with pytest.raises(MemoryError, match="less than 4294967296 MiB are free"):
        check_memory()
    with pytest.raises(MemoryError, match="unable to allocate 4503599627370496 bytes"):
        aligned_empty(1 << 52)


@pytest.mark.parametrize(
    ("left", "is_enough"), [(RESIDENT_BYTES, True), (None, True), (RESIDENT_BYTES - 1, False)]
)
def test_what_is_left_below_the_limit_of_a_container_is_asked_for(left: int | None, is_enough: bool) -> None:
    watch_memory(lambda: left)
    try:
        if is_enough:
            check_memory()
        else:
            with pytest.raises(
                MemoryError, match="less than 48 MiB are left below the limit of the container"
            ):
                check_memory()
    finally:
        watch_memory(None)
    check_memory()
