"""The real command, with a layer beside the engine's own that takes its time: `python -m` this module, `serve`."""

import sys
import time

from engine import TensorSpec, layer
from engine.dtypes import Array
from service.cli import main

NAP_SECONDS = 0.02


def _same(input: TensorSpec) -> TensorSpec:
    return input


@layer("test.Nap", infer=_same)
def nap(input: Array) -> Array:
    """Answer the input, later."""
    time.sleep(NAP_SECONDS)
    return input


if __name__ == "__main__":
    sys.exit(main())
