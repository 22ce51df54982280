"""The model that ships reads what its card says it reads."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from engine import Port, Precision, Quantization, RuntimeGraph, write_sidecar
from engine.calibration.calibrator import METHODS, Calibrator
from engine.calibration.examples import ArrayExamples, Examples
from service.codec import decode
from service.config.limits import Limits
from service.pictures import PictureExamples
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import LoadOptions, load_version
from service.tasks.classification import ClassPrediction
from tests.golden import digits as golden

FOLDER = Path(__file__).parents[2] / "models" / "digits"
PARAM = FOLDER / "digits.pnnx.param"


@pytest.fixture(scope="module")
def digits() -> LoadedModel:
    return load_version("digits", FOLDER, LoadOptions())


def quantized(examples: Callable[[Sequence[Port]], Examples], method: str = "mse") -> Quantization:
    graph = RuntimeGraph(PARAM)
    graph.build()
    calibrator = Calibrator(graph, examples(graph.inputs), [], lambda *_: None)
    calibrator.calibrate(method)
    return calibrator.quantization(calibrator.candidates)


def read(model: LoadedModel, picture: bytes) -> str:
    inputs = decode(picture, "image/png", model.graph.inputs, model.config, Limits()).inputs
    outputs = model.graph.forward(inputs)
    predictions = model.task.predict(outputs, (), {"top_k": 1})
    assert predictions is not None
    best = predictions[0][0]
    assert isinstance(best, ClassPrediction)
    return best.label


@pytest.mark.parametrize("digit", range(10))
def test_samples_are_read(digits: LoadedModel, digit: int) -> None:
    assert read(digits, (FOLDER / "samples" / f"{digit}.png").read_bytes()) == str(digit)


@pytest.mark.parametrize("digit", range(10))
def test_negatives_of_samples_are_read(digits: LoadedModel, digit: int, tmp_path: Path) -> None:
    with Image.open(FOLDER / "samples" / f"{digit}.png") as picture:
        ImageOps.invert(picture.convert("L")).save(tmp_path / "negative.png")
    assert read(digits, (tmp_path / "negative.png").read_bytes()) == str(digit)


def test_samples_are_read_in_int8(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "digits")
    scales = quantized(lambda ports: PictureExamples(folder / "samples", folder, ports))
    write_sidecar(scales, folder / PARAM.name, (folder / PARAM.name).with_suffix(".bin"))
    model = load_version("digits", folder, LoadOptions(precision="int8"))
    assert model.graph.precisions["block2.conv2"] is Precision.INT8
    pictures = [(FOLDER / "samples" / f"{digit}.png").read_bytes() for digit in range(10)]
    assert [read(model, picture) for picture in pictures] == list("0123456789")


@pytest.mark.parametrize("method", METHODS)
def test_int8_finds_what_pytorch_finds_in_float32(tmp_path: Path, method: str) -> None:
    """Every other picture is left out of calibration. None is a digit: near ties may be read either way."""
    pictures, wanted = golden.pictures(), np.load(golden.DATA)
    np.savez(tmp_path / "examples.npz", in_0=pictures[::2])
    scales = quantized(lambda ports: ArrayExamples(tmp_path / "examples.npz", ports), method)
    graph = RuntimeGraph(PARAM, quantization=scales)
    graph.build()
    (found,) = graph.forward([pictures])
    others = slice(1, None, 2)
    second, best = np.sort(wanted[others], axis=1)[:, -2:].T
    decided = best - second > 0.1
    assert decided.sum() >= 14
    np.testing.assert_array_equal(found[others].argmax(1)[decided], wanted[others].argmax(1)[decided])
    error = np.linalg.norm(found[others] - wanted[others]) / np.linalg.norm(wanted[others])
    assert 0.001 < error < 0.12


def test_any_batch_runs(digits: LoadedModel) -> None:
    images = np.random.default_rng(0).random((5, 1, 28, 28), np.float32)
    together = digits.graph.forward([images])[0]
    np.testing.assert_allclose(together.sum(axis=1), 1, rtol=1e-5)
    for image, wanted in zip(images, together, strict=True):
        np.testing.assert_allclose(digits.graph.forward([image[None]])[0][0], wanted, rtol=1e-4, atol=1e-6)


def test_card_keeps_to_the_measurements() -> None:
    metrics = json.loads((FOLDER / "metrics.json").read_text())["test"]
    assert metrics["scans"] == 360
    assert metrics["accuracy_png"] >= 0.98
    card = (FOLDER / "MODEL_CARD.md").read_text()
    assert (
        f"**{metrics['accuracy_png']:.1%}** ({metrics['errors_png']} of 360 misread)".replace("%", " %")
        in card
    )
    assert (FOLDER / "digits.pnnx.bin").stat().st_size < 1_000_000


@pytest.mark.parametrize("threads", [1, 2])
def test_a_row_has_the_same_bits_alone_and_in_batches_of_all_sizes(threads: int) -> None:
    """What a client is answered does not depend on whose requests its own is run with."""
    graph = RuntimeGraph(PARAM, threads=threads)
    graph.build()
    x = np.random.default_rng(0).random((16, 1, 28, 28), np.float32)
    (together,) = graph.forward([x])
    for size in (1, 2, 3, 5, 8):
        parts = [graph.forward([x[start : start + size]])[0] for start in range(0, len(x), size)]
        np.testing.assert_array_equal(np.concatenate(parts), together)
