"""First and second loads of networks: peak memory beside the weights, and time. Run: python -m tests.zoo.loads NAME …

Each is loaded and run in a process of its own, first with empty caches, then with what that kept. What the process had
after its imports is subtracted from the peak. The same for the digits model, of half a megabyte, is what the compiler
takes. The command ends with status 1 where a network takes more memory than that, 1.5 times its weights, and the memory
of a run. Times are those of the processor until the network can be run, without imports, on one thread.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from engine import Array, RuntimeGraph, TensorSpec
from tests.bench.memory import peak_bytes
from tests.bench.worker import in_own_process

_DIGITS = Path(__file__).parents[2] / "models/digits/digits.pnnx.param"
_SHARE = 1.5
_INPUTS = "inputs.npz"
_RUNS = 3


@dataclass(frozen=True)
class Load:
    """What loading a network took.

    Attributes:
        peak: bytes of memory of the process at most, less what it had after its imports.
        weights: bytes of the weights in the file.
        run: bytes of memory of a run.
        seconds: processor time of the load.
    """

    peak: int
    weights: int
    run: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table; returns 1 where a network takes more memory than it may."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", metavar="NAME")
    chosen = parser.parse_args(arguments)
    compiler = first_and_second(_DIGITS, [np.zeros((1, 1, 28, 28), np.float32)])[0].peak
    print(f"The compiler takes {compiler / 1e6:.0f} MB.\n")
    print(
        "| network | weights, MB | a run, MB | peak, MB | peak without compiler and run, of the weights "
        "| first load, s | second load, s |"
    )
    print("|---|---|---|---|---|---|---|")
    is_above = False
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.names:
            param = in_own_process(export_network, name, Path(folder) / name)
            with np.load(param.parent / _INPUTS) as inputs:
                first, second = first_and_second(param, list(inputs.values()))
            share = (first.peak - compiler - first.run) / first.weights
            sizes = " | ".join(f"{size / 1e6:.0f}" for size in (first.weights, first.run, first.peak))
            print(
                f"| {name} | {sizes} | {share:.2f} | {first.seconds:.2f} | {second.seconds:.2f} |", flush=True
            )
            is_above |= share > _SHARE
    return int(is_above)


def first_and_second(param: Path, inputs: list[Array]) -> tuple[Load, Load]:
    """Load a model with empty caches, and with what that kept."""
    with tempfile.TemporaryDirectory() as cache:
        return in_own_process(load, param, inputs, cache), in_own_process(load, param, inputs, cache)


def export_network(name: str, folder: Path) -> Path:
    """Export a network with fixed sizes; returns the `.param` file, beside which its inputs lie."""
    from service.export import export  # with PyTorch, which must not count for those that only load
    from tests.zoo.networks import NETWORKS

    network = NETWORKS[name]
    export(f"tests.zoo.networks:{name}", folder, inputs=[item.fixed for item in network.inputs])
    np.savez(folder / _INPUTS, *network.arrays())
    return next(folder.glob("*.param"))


def load(param: Path, inputs: list[Array], cache: str) -> Load:
    """Load a model in this process, and run it.

    Raises:
        RuntimeError: no kernel runs it, or the system does not say how much memory it takes.
    """
    imported, began = peak_bytes(), time.process_time()
    os.environ["KUIPER_CACHE"] = cache
    graph = RuntimeGraph(param, backend="native", threads=1)
    graph.build()
    footprint = graph.prepare([TensorSpec(array.shape, array.dtype) for array in inputs])
    seconds = time.process_time() - began
    for _ in range(_RUNS):
        graph.forward(inputs)
    peak = peak_bytes()
    if peak is None or imported is None or footprint is None:
        raise RuntimeError(f"{param.stem}: no kernels, or no peak of memory")
    with ZipFile(param.with_suffix(".bin")) as weights:
        size = sum(entry.file_size for entry in weights.infolist())
    return Load(peak - imported, size, footprint.arena_bytes + footprint.scratch_bytes, seconds)


if __name__ == "__main__":
    sys.exit(main())
