"""The real command, with a layer that waits while models are loaded: `python -m` this module, `serve`."""

import os
import sys
from pathlib import Path

from engine import Array, TensorSpec, layer
from service.cli import main

FOLDER = "TEST_GATE_FOLDER"
"""Variable with the folder in which the pipes `entered` and `gate` are, as long as the layer is to wait."""

GATED = """
pnnx.Input  in   0 1 0 #0=(?,3)f32
test.Gate   gate 1 1 0 1
nn.ReLU     relu 1 1 1 2
pnnx.Output out  1 0 2
"""
"""Returns max(x, 0)."""


def _same(input: TensorSpec) -> TensorSpec:
    return input


@layer("test.Gate", infer=_same)
def wait(input: Array) -> Array:
    folder = Path(os.environ[FOLDER])
    if (folder / "gate").exists():
        (folder / "entered").write_bytes(b".")
        (folder / "gate").read_bytes()
    return input


if __name__ == "__main__":
    sys.exit(main())
