"""The models of the benchmark, each as PNNX files and as ONNX of the same weights; needs the extra [bench]."""

import json
import warnings
from collections.abc import Mapping
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import torch
from PIL import Image

from engine.dtypes import Array
from tests.bench.service.served_model import ServedModel
from tests.golden.networks import build, export

ROOT = Path(__file__).parents[3]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CONFIG = f"""
task = "classification"
[image]
size = [224, 224]
colour = "rgb"
mean = {MEAN}
std = {STD}
"""


def make_models(root: Path) -> list[ServedModel]:
    """Write the models' files to `root`, unless those of the same weights are there."""
    torch.set_num_threads(1)
    return [_digits(root / "digits"), _resnet18(root / "resnet18")]


def _digits(folder: Path) -> ServedModel:
    module = _digits_module()
    if not (folder / "digits").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "digits").symlink_to(ROOT / "models/digits")
    picture = (ROOT / "models/digits/samples/7.png").read_bytes()
    with Image.open(BytesIO(picture)) as opened:
        small = opened.convert("L").resize((28, 28), Image.Resampling.BILINEAR)
    prepared = (np.asarray(small, np.float32) / 255)[None, None]
    array = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    image = {"mode": "L", "side": 28, "mean": [0.0], "std": [1.0]}
    return _model("digits", folder, module, array, picture, prepared, image)


def _digits_module() -> Any:
    """Return the network with the weights of the file that is served."""
    spec = spec_from_file_location("digits_network", ROOT / "models/digits/training/network.py")
    if spec is None or spec.loader is None:
        raise ImportError("models/digits/training/network.py cannot be read")
    source = module_from_spec(spec)
    spec.loader.exec_module(source)
    module = source.DigitsNet().eval()
    state = module.state_dict()
    with ZipFile(ROOT / "models/digits/digits.pnnx.bin") as archive:
        for name in archive.namelist():
            weights = np.frombuffer(archive.read(name), np.float32).copy()
            state[name].copy_(torch.from_numpy(weights).reshape(state[name].shape))
    return module


def _resnet18(folder: Path) -> ServedModel:
    module = build("resnet18").eval()
    served = folder / "resnet18"
    if not (served / "model.toml").exists():
        export(module, [(1, 3, 224, 224)], served, name="resnet18")
        (served / "model.toml").write_text(CONFIG)
    generator = np.random.default_rng(0)
    array = generator.standard_normal((1, 3, 224, 224)).astype(np.float32)
    pixels = np.asarray(Image.fromarray(generator.integers(0, 256, (14, 14, 3), np.uint8)).resize((224, 224)))
    target = BytesIO()
    Image.fromarray(pixels).save(target, "PNG")
    prepared = ((pixels / 255 - MEAN) / STD).transpose(2, 0, 1)[None].astype(np.float32)
    image = {"mode": "RGB", "side": 224, "mean": MEAN, "std": STD}
    return _model("resnet18", folder, module, array, target.getvalue(), prepared, image)


def _model(
    name: str, folder: Path, module: Any, array: Array, picture: bytes, prepared: Array, image: Any
) -> ServedModel:
    given = (torch.from_numpy(array),)
    rows = {"input": {0: "rows"}, "scores": {0: "rows"}}
    digest, written = _digest(module), folder / "weights.sha256"
    if not written.exists() or written.read_text() != digest:
        for file, axes in (("model.onnx", None), ("batched.onnx", rows)):
            _export_onnx(module, given, folder / file, axes)
        written.write_text(digest)
    (folder / "image.json").write_text(json.dumps(image))
    with torch.inference_mode():
        scores, of_picture = (module(torch.from_numpy(one)).numpy() for one in (array, prepared))
    return ServedModel(name, folder, array, picture, scores, of_picture)


def _digest(module: Any) -> str:
    """Return what distinguishes a network's weights from others: those of a model in the tree may be trained again."""
    digest = sha256()
    for name, tensor in module.state_dict().items():
        digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()


def _export_onnx(
    module: Any, given: tuple[Any], path: Path, axes: Mapping[str, Mapping[int, str]] | None
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter announces its successor
        torch.onnx.export(
            module,
            given,
            str(path),
            dynamo=False,
            input_names=["input"],
            output_names=["scores"],
            dynamic_axes=axes,
        )
