"""ResNet18 at 224x224, batch 1, f32, one thread: this engine against other runtimes, and layer by layer.

Run: make bench        (or python -m tests.bench.resnet18 [--rounds N] [--threads N])

Weights are made from a seed. All contenders take turns within one run; times are medians.
"""

import argparse
import platform
import tempfile
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from engine import RuntimeGraph, TraceLevel
from engine.dtypes import Array
from tests.bench.peers import Call, available
from tests.bench.timing import interleave
from tests.golden.networks import build
from tests.golden.networks.export import export

SHAPE = (1, 3, 224, 224)


def processor() -> str:
    """Name the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def per_layer_medians(graph: RuntimeGraph, image: Array, rounds: int) -> list[tuple[str, str, float, float]]:
    """Return name, type, median milliseconds and GFLOP/s of each layer, in execution order."""
    traces = [graph.run([image], trace=TraceLevel.ON).trace for _ in range(rounds)]
    rows = []
    for layers in zip(*(trace.layers for trace in traces if trace is not None), strict=True):
        seconds = float(np.median([layer.duration_us for layer in layers])) / 1e6
        flops = 2 * layers[0].multiply_adds
        rows.append(
            (layers[0].name, layers[0].type, seconds * 1e3, flops / seconds / 1e9 if seconds else 0.0)
        )
    return rows


def print_comparison(medians: dict[str, float], threads: int) -> None:
    """Print median times and the ratio of each to onnxruntime's, or to our own without it."""
    base = "onnxruntime" if "onnxruntime" in medians else "kuiper numpy"
    print(
        f"\n{'runtime':<28}{'median ms':>10}{'ratio to ' + base:>24}   ({threads} thread{'s'[: threads > 1]})"
    )
    for name, seconds in sorted(medians.items(), key=lambda item: item[1]):
        print(f"{name:<28}{seconds * 1e3:>10.2f}{seconds / medians[base]:>24.2f}")
    overhead = medians["kuiper numpy, trace on"] / medians["kuiper numpy"] - 1
    print(f"tracing costs {overhead:+.1%}")


def print_layers(rows: list[tuple[str, str, float, float]]) -> None:
    """Print the per-layer table."""
    print(f"\n{'layer':<28}{'type':<24}{'ms':>8}{'GFLOP/s':>10}")
    for name, kind, milliseconds, gflops in rows:
        print(f"{name:<28}{kind:<24}{milliseconds:>8.3f}{gflops if gflops else '':>10.4}")


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    image = np.random.default_rng(0).standard_normal(SHAPE).astype(np.float32)
    module = build("resnet18")
    with tempfile.TemporaryDirectory() as name, threadpool_limits(arguments.threads):
        folder = Path(name)
        graph = RuntimeGraph(*export(module, [SHAPE], folder))
        graph.build()
        contenders: dict[str, Call] = {
            "kuiper numpy": lambda: graph.forward([image])[0],
            "kuiper numpy, trace on": lambda: graph.run([image], trace=TraceLevel.ON).outputs[0],
        }
        for peer, prepare in available().items():
            contenders[peer] = prepare(module, image, folder, arguments.threads)
        print(f"{processor()}, numpy {np.__version__}, ResNet18 {SHAPE} f32")
        wanted = np.asarray(contenders["torch"]()) if "torch" in contenders else contenders["kuiper numpy"]()
        for peer, call in contenders.items():
            error = float(np.abs(call() - wanted).max() / np.abs(wanted).max())
            print(f"  {peer}: largest difference to torch {error:.1e}")
        medians = interleave(contenders, arguments.rounds)
        print_comparison(medians, arguments.threads)
        print_layers(per_layer_medians(graph, image, arguments.rounds))


if __name__ == "__main__":
    main()
