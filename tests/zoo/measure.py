"""Exports one network, checks and times it. Run: python -m tests.zoo.measure NAME COMMIT FILE [--untimed].

A process of its own: what crashes or hangs loses the rest of one row.
"""

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

from threadpoolctl import threadpool_limits

from engine import Array, KuiperError, LayerTrace, RuntimeGraph, TraceLevel
from service.export import ExportError, export
from tests.zoo.comparison import difference, limit, run
from tests.zoo.network import Network, Shape
from tests.zoo.networks import NETWORKS, build
from tests.zoo.results import Export, Row, one_line, row_to_json
from tests.zoo.timing import time_runtimes

_TRACED = 5


def main() -> None:
    """Measure a network, and write its row each time that it knows more."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("name", choices=tuple(NETWORKS), metavar="NAME")
    parser.add_argument("commit")
    parser.add_argument("file", type=Path)
    parser.add_argument("--untimed", action="store_true", help="run no other runtimes")
    arguments = parser.parse_args()
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for row in rows(arguments.name, arguments.commit, Path(folder), is_timed=not arguments.untimed):
            part = arguments.file.with_suffix(".part")
            part.write_text(row_to_json(row))
            part.replace(arguments.file)


def rows(name: str, commit: str, folder: Path, is_timed: bool) -> Iterator[Row]:
    """Yield what is known of a network after each step."""
    network = NETWORKS[name]
    row = Row(name, network.package, commit)
    yield row
    module = build(name)
    row = replace(row, fixed=_export(name, module, folder / "fixed", is_dynamic=False))
    yield row
    row = replace(row, dynamic=_export(name, module, folder / "dynamic", is_dynamic=True))
    yield row
    param = next(iter(sorted(folder.glob("fixed/*.param"))), None) or next(
        folder.glob("dynamic/*.param"), None
    )
    if param is None:
        return
    graph = RuntimeGraph(param, backend="native", threads=1)
    graph.build()
    row = replace(row, **_shares(graph, network.arrays()))
    yield row
    if is_timed:
        yield replace(row, **time_runtimes(graph, module, network.arrays(), folder))


def _export(name: str, module: Any, folder: Path, is_dynamic: bool) -> Export:
    """Export a network as a user does, and run what was written on inputs that the export has not seen."""
    network = NETWORKS[name]
    started = perf_counter()
    specs = [item.spec if is_dynamic else item.fixed for item in network.inputs]
    try:
        export(f"tests.zoo.networks:{name}", folder, inputs=specs)
    except ExportError as error:
        return Export(one_line(error), seconds=perf_counter() - started)
    except Exception as error:  # a fault of the export, which is a row of the table as well
        return Export(one_line(f"{type(error).__name__}: {error}"), seconds=perf_counter() - started)
    seconds = perf_counter() - started
    shapes = network.shapes if is_dynamic else [[item.shape for item in network.inputs]]
    return replace(_check(next(folder.glob("*.param")), network, module, shapes), seconds=seconds)


def _check(param: Path, network: Network, module: Any, shapes: Sequence[Sequence[Shape]]) -> Export:
    graph = RuntimeGraph(param, backend="native", threads=1)
    graph.build()
    largest = 0.0
    for count, chosen in enumerate(shapes):
        arrays = network.arrays(chosen)
        try:
            largest = max(largest, difference(graph.forward(arrays), run(module, arrays)))
        except (KuiperError, ValueError) as error:
            return Export(one_line(f"on {list(chosen)}: {error}"), largest, count)
        if not largest <= (most := limit(module, arrays)):
            problem = f"differs by {largest:.1e} on {list(chosen)}, where rounding explains {most:.0e}"
            return Export(problem, largest, count + 1)
    return Export("", largest, len(shapes))


def _shares(graph: RuntimeGraph, arrays: Sequence[Array]) -> dict[str, Any]:
    """Return how the time of a run divides into compiled kernels and operators that run in numpy."""
    graph.forward(arrays)
    runs = [graph.run(arrays, trace=TraceLevel.ON).trace for _ in range(_TRACED)]
    layers = [layer for trace in runs if trace is not None for layer in trace.layers]
    total = sum(layer.duration_us for layer in layers) or 1.0
    numpy: dict[str, float] = {}
    for layer in layers:
        if layer.backend == "numpy" and _does_something(layer):
            numpy[layer.type] = numpy.get(layer.type, 0.0) + layer.duration_us / total
    native = sum(layer.duration_us for layer in layers if layer.backend == "native") / total
    return {"native": native, "numpy": dict(sorted(numpy.items(), key=lambda item: -item[1]))}


def _does_something(layer: LayerTrace) -> bool:
    return layer.type not in ("pnnx.Input", "pnnx.Output") and layer.fused_into is None


if __name__ == "__main__":
    main()
