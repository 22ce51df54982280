"""The real command, with layers beside the engine's own that wait for the test: `python -m` this module, `serve`.

The first element of a request's input is its number. `test.Block` writes that number to one pipe and waits for a byte
from another; `test.Mark` writes it to a third, and so shows that the run came as far as this.
"""

import os
import sys

from engine import Array, TensorSpec, layer
from service.cli import main

ENTERED, GATE, PASSED = "TEST_ENTERED_FD", "TEST_GATE_FD", "TEST_PASSED_FD"

BLOCKING = """
pnnx.Input  in    0 1 0 #0=(1)f32
test.Block  block 1 1 0 1
test.Mark   mark  1 1 1 2
pnnx.Output out   1 0 2
"""

FAULT = """
pnnx.Input  in    0 1 0 #0=(1)f32
test.Fault  fault 1 1 0 1
pnnx.Output out   1 0 1
"""


def _same(input: TensorSpec) -> TensorSpec:
    return input


def _number(array: Array) -> bytes:
    return bytes([int(array.flat[0])])


@layer("test.Block", infer=_same)
def block(input: Array) -> Array:
    os.write(int(os.environ[ENTERED]), _number(input))
    os.read(int(os.environ[GATE]), 1)
    return input


@layer("test.Mark", infer=_same)
def mark(input: Array) -> Array:
    os.write(int(os.environ[PASSED]), _number(input))
    return input


@layer("test.Fault", infer=_same)
def fault(input: Array) -> Array:
    raise RuntimeError("a fault of the server")


if __name__ == "__main__":
    sys.exit(main())
