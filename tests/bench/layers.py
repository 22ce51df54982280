"""What each layer of the native backend takes, from the engine's own traces."""

from collections.abc import Sequence
from statistics import median

from engine import RuntimeGraph, TraceLevel
from engine.run.trace import LayerTrace, RunTrace
from tests.bench.models import ModelFiles
from tests.bench.peak import peak_gflops
from tests.bench.results import LayerTable, LayerTime


def layer_table(files: ModelFiles, threads: int, runs: int) -> LayerTable:
    """Return the layers of a model, each with the median of some traced runs; runs in a process of its own."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        graph = RuntimeGraph(files.param, backend="native", threads=threads)
        graph.build()
        image = files.model.input()
        graph.forward([image])
        traces = [graph.run([image], trace=TraceLevel.ON).trace for _ in range(runs)]
        peak = peak_gflops(threads)
    rows = layer_rows([trace for trace in traces if trace is not None], peak)
    return LayerTable(files.model.name, threads, peak, tuple(rows))


def layer_rows(traces: Sequence[RunTrace], peak: float) -> list[LayerTime]:
    """Return the layers that take time; the operations of fused operators count where their work is done."""
    multiply_adds: dict[str, int] = {}
    for layer in traces[0].layers:
        host = layer.fused_into or layer.name
        multiply_adds[host] = multiply_adds.get(host, 0) + layer.multiply_adds
    rows = []
    for layers in zip(*(trace.layers for trace in traces), strict=True):
        seconds = median(layer.duration_us for layer in layers) / 1e6
        if seconds > 0:
            rows.append(_row(layers[0], seconds, 2 * multiply_adds[layers[0].name], peak))
    return rows


def _row(layer: LayerTrace, seconds: float, operations: int, peak: float) -> LayerTime:
    gflops = operations / seconds / 1e9
    shape = next((output.shape for output in layer.outputs if output.shape is not None), ())
    return LayerTime(
        layer.name, layer.type, layer.backend, len(layer.fused), shape, seconds, gflops, gflops / peak
    )
