"""A made-up report that tests draw, print and read back."""

from tests.bench.results import (
    BenchReport,
    LayerTable,
    LayerTime,
    RuntimeResult,
    Startup,
    StartupPhases,
    Throughput,
    TraceCost,
)

TIMES = {
    "resnet18": {"native": 0.008, "numpy": 0.040, "onnxruntime": 0.010, "openvino": 0.016, "torch": 0.020},
    "unet": {"native": 0.064, "numpy": 0.320, "onnxruntime": 0.080, "openvino": 0.040, "torch": 0.160},
    "vit": {"native": 0.500, "numpy": 0.001, "onnxruntime": 0.010, "openvino": 0.010, "torch": 0.010},
}
START = Startup(0.25, 0.5, 100 * 2**20, 1e-6)


def _results(threads: int) -> list[RuntimeResult]:
    found = [
        RuntimeResult(model, threads, runtime, seconds, START, rounds=20 if model == "vit" else 7)
        for model, times in TIMES.items()
        for runtime, seconds in times.items()
    ]
    return [*found, RuntimeResult("unet", threads, "ncnn", None, None, "ValueError: no such <layer>")]


def sample_report() -> BenchReport:
    """Return a report of three models, in which ncnn failed on one and has no result on the others."""
    machine = {"processor": "A & B", "cores": "2", "instructions": "avx2", "versions": "numpy 2"}
    fast = LayerTime("conv1", "nn.Conv2d", "native", 2, (1, 64, 56, 56), 0.001, 200.0, 0.5)
    slow = LayerTime("pool", "nn.MaxPool2d", "numpy", 0, (1, 64, 28, 28), 0.003, 0.0, 0.0)
    return BenchReport(
        machine,
        20,
        tuple(_results(1) + _results(2)),
        (LayerTable("resnet18", 1, 400.0, (fast, slow)),),
        (TraceCost("resnet18", 1, 0.010, 0.0101),),
        Throughput("resnet18", 120.0, 100.0),
        StartupPhases("resnet18", 0.1, 0.05, 0.01, 0.7, 0.008),
        0.2,
        ("unet, ncnn, 1 threads: ValueError: no such <layer>",),
    )
