"""First and second loads of networks: peak memory beside the weights, and time. Run: python -m tests.zoo.loads NAME …

Each is loaded and run in processes of its own. Memory is that of a first load, with empty caches, less what the process
had after its imports; the same for the digits model, of half a megabyte, is what the compiler takes. The command ends
with status 1 where a network takes more than that, 1.5 times its weights, and the memory of a run. Times are those of
the processor until the network can be run, beside the digits model: with empty caches, then with what that kept; on one
thread.
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
from engine.compiler.program.background import finish_background
from engine.run.executor import Footprint
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
    compiler = measured(_DIGITS, [np.zeros((1, 1, 28, 28), np.float32)], 1)[0].peak
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
                alone = measured(param, list(inputs.values()), 1)[0]
                first, second = measured(param, list(inputs.values()), 2, is_beside=True)
            share = (alone.peak - compiler - alone.run) / alone.weights
            sizes = " | ".join(f"{size / 1e6:.0f}" for size in (alone.weights, alone.run, alone.peak))
            print(
                f"| {name} | {sizes} | {share:.2f} | {first.seconds:.2f} | {second.seconds:.2f} |", flush=True
            )
            is_above |= share > _SHARE
    return int(is_above)


def measured(param: Path, inputs: list[Array], count: int, *, is_beside: bool = False) -> list[Load]:
    """Load a model so many times, each in a process of its own, at first with empty caches."""
    with tempfile.TemporaryDirectory() as cache:
        return [in_own_process(load, param, inputs, cache, is_beside) for _ in range(count)]


def export_network(name: str, folder: Path) -> Path:
    """Export a network with fixed sizes; returns the `.param` file, beside which its inputs lie."""
    from service.export import export  # with PyTorch, which must not count for those that only load
    from tests.zoo.networks import NETWORKS

    network = NETWORKS[name]
    export(f"tests.zoo.networks:{name}", folder, inputs=[item.fixed for item in network.inputs])
    np.savez(folder / _INPUTS, *network.arrays())
    return next(folder.glob("*.param"))


def load(param: Path, inputs: list[Array], cache: str, is_beside: bool) -> Load:
    """Load a model in this process, beside another one or alone, and run it.

    Raises:
        RuntimeError: no kernel runs it, or the system does not say how much memory it takes.
    """
    os.environ["KUIPER_CACHE"] = cache
    if is_beside:
        _prepared(_DIGITS, [np.zeros((1, 1, 28, 28), np.float32)])
        finish_background()
    imported, began = peak_bytes(), time.process_time()
    graph, footprint = _prepared(param, inputs)
    seconds = time.process_time() - began
    for _ in range(_RUNS):
        graph.forward(inputs)
    peak = peak_bytes()
    if peak is None or imported is None or footprint is None:
        raise RuntimeError(f"{param.stem}: no kernels, or no peak of memory")
    with ZipFile(param.with_suffix(".bin")) as weights:
        size = sum(entry.file_size for entry in weights.infolist())
    return Load(peak - imported, size, footprint.arena_bytes + footprint.scratch_bytes, seconds)


def _prepared(param: Path, inputs: list[Array]) -> tuple[RuntimeGraph, Footprint | None]:
    graph = RuntimeGraph(param, backend="native", threads=1)
    graph.build()
    return graph, graph.prepare([TensorSpec(array.shape, array.dtype) for array in inputs])


if __name__ == "__main__":
    sys.exit(main())
