import io
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pytest

from engine import InputError, Precision, QuantizationError, RuntimeGraph, read_sidecar
from service.commands.dispatch import run_command
from service.pictures import PictureExamples
from service.repository.version_loader import LoadOptions, load_version
from tests.models.test_digits import FOLDER, read


def copy_model(target: Path) -> Path:
    """Copy the model of digits to a folder of its own; returns the folder."""
    folder = target / "digits"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("training", "*.md"))
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return copy_model(tmp_path)


@pytest.fixture(scope="module")
def quantized(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The model, quantized by the command, and what the command printed."""
    model, printed = copy_model(tmp_path_factory.mktemp("quantized")), io.StringIO()
    given = [str(model), "--data", str(model / "samples"), "--measured", "2", "--agreement", "1"]
    with redirect_stdout(printed):
        assert run_command(["quantize", *given]) == 0
    return model, printed.getvalue()


def test_pictures_are_prepared_as_the_model_says(model: Path) -> None:
    graph = RuntimeGraph(model / "digits.pnnx.param")
    graph.init()
    examples = PictureExamples(model / "samples", model, graph.inputs)
    assert (len(examples), examples.name) == (10, "samples")
    (image,) = examples[3]
    assert image.shape == (1, 1, 28, 28)
    assert image.dtype == np.float32
    assert 0 <= image.min() < image.max() <= 1


def test_the_command_quantizes_from_pictures(quantized: tuple[Path, str]) -> None:
    model, printed = quantized
    found = read_sidecar(model / "digits.pnnx.param", model / "digits.pnnx.bin")
    assert "widen1.conv" in found.layers
    assert "100.00% of the rows have the class of float32" in printed


def test_a_server_loads_a_quantized_model_in_int8(quantized: tuple[Path, str]) -> None:
    model, _ = quantized
    loaded = load_version("digits", model, LoadOptions(precision="int8", max_batch_size=4))
    assert loaded.graph.precisions["head"] is Precision.INT8
    assert loaded.graph.verification.refused == ()
    for digit in range(10):
        assert read(loaded, (model / "samples" / f"{digit}.png").read_bytes()) == str(digit)


def test_a_server_refuses_int8_of_a_model_that_is_not_quantized(model: Path) -> None:
    with pytest.raises(QuantizationError, match="digits.quantization.json: is missing.*`kuiper quantize"):
        load_version("digits", model, LoadOptions(precision="int8"))


def test_folders_without_pictures_and_damaged_pictures_are_named(model: Path, tmp_path: Path) -> None:
    graph = RuntimeGraph(model / "digits.pnnx.param")
    graph.init()
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="holds no pictures"):
        PictureExamples(empty, model, graph.inputs)
    (empty / "a.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="a.png"):
        PictureExamples(empty, model, graph.inputs)[0]
    (model / "model.toml").write_text('task = "raw"\n')
    with pytest.raises(InputError, match=r"has no \[image\] table"):
        PictureExamples(empty, model, graph.inputs)
