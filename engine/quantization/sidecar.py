"""`NAME.quantization.json`: the quantization of a model, beside its `.param`.

    {
      "format": 1,
      "model": {"param": "sha256:…", "bin": "sha256:…"},
      "calibration": {"data": "photographs", "examples": 64, "method": "mse", "error": 0.012},
      "layers": {"conv1": "static", "fc": "dynamic"},
      "tensors": {"0": {"scale": 0.0187, "zero_point": 114}},
      "figures": what was measured; see `engine.quantization.figures`
    }

`model` names the files that it was made for: one that belongs to others is refused, as their layers may have the same
names. Nothing in it is believed: it is bounded in size, and every value is checked.
"""

import hashlib
import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np

from engine.errors import QuantizationError
from engine.quantization.document import Node
from engine.quantization.figures import figures_document, read_figures
from engine.quantization.scheme import Activation, Calibration, Quantization
from engine.quantization.tensor_scale import LARGEST, TensorScale

FORMAT = 1
SUFFIX = ".quantization.json"
MAX_BYTES = 16 << 20
"""Bytes of the largest file that is read."""
SCALES = (1e-30, 1e30)
"""The least and the greatest scale: reciprocals and products of such are normal float32 numbers."""
_KEYS = ("format", "model", "calibration", "layers", "tensors")
_FIGURES = "figures"
"""Optional key."""
_BLOCK = 1 << 20


def sidecar_path(param_path: Path) -> Path:
    """Return where the quantization of a `.param` file lies: `model.pnnx.param` has `model.quantization.json`."""
    name = param_path.name.removesuffix(".param").removesuffix(".pnnx")
    return param_path.with_name(name + SUFFIX)


def file_digest(path: Path) -> str:
    """Return the digest of a file: "sha256:" and hexadecimal digits.

    Raises:
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return f"sha256:{digest.hexdigest()}"


def model_digests(param_path: Path, bin_path: Path) -> dict[str, str]:
    """Return the digests of a model's files, "param" and "bin".

    Raises:
        OSError: one cannot be read.
    """
    return {"param": file_digest(param_path), "bin": file_digest(bin_path)}


def write_sidecar(quantization: Quantization, param_path: Path, bin_path: Path) -> Path:
    """Write a model's quantization beside its `.param`, whole or not at all; returns the path of the file.

    Raises:
        OSError: it cannot be written.
    """
    path = sidecar_path(param_path)
    calibration = quantization.calibration
    document: dict[str, Any] = {
        "format": FORMAT,
        "model": model_digests(param_path, bin_path),
        "calibration": None if calibration is None else _calibration_entry(calibration),
        "layers": {name: activation.value for name, activation in quantization.layers.items()},
        "tensors": {
            name: {"scale": scale.scale, "zero_point": scale.zero_point}
            for name, scale in quantization.tensors.items()
        },
    }
    if quantization.figures is not None:
        document[_FIGURES] = figures_document(quantization.figures)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        partial.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _calibration_entry(calibration: Calibration) -> dict[str, Any]:
    values = {"data": calibration.data, "examples": calibration.examples, "method": calibration.method}
    error = calibration.error
    return values if error is None or not math.isfinite(error) else values | {"error": error}


def read_sidecar(param_path: Path | str, bin_path: Path | str) -> Quantization:
    """Return the quantization that lies beside a model.

    Raises:
        QuantizationError: there is none, it is not what `write_sidecar` writes, or it was made for other files.
    """
    param_path, bin_path = Path(param_path), Path(bin_path)
    path = sidecar_path(param_path)
    try:
        data = _read(path)
        digests = model_digests(param_path, bin_path)
    except FileNotFoundError as error:
        problem = (
            f"is missing, and int8 needs its scales; `kuiper quantize {param_path} --data EXAMPLES` makes it"
        )
        raise QuantizationError(path, None, problem) from error
    except OSError as error:
        raise QuantizationError(path, None, f"cannot be read: {error.strerror or error}") from error
    if len(data) > MAX_BYTES:
        raise QuantizationError(path, None, f"has more than {MAX_BYTES:,} bytes")
    document = _parse(path, data)
    for kind, digest in digests.items():
        if document.mapping("model").text(kind) != digest:
            problem = (
                f"was made for another .{kind} file; run `kuiper quantize {param_path} --data EXAMPLES` again"
            )
            raise QuantizationError(path, f"model.{kind}", problem)
    return _quantization(document)


def _read(path: Path) -> bytes:
    """Return the first bytes of a file, one more than may be there; pipes and devices are not read."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        problem = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
        raise QuantizationError(path, None, problem, "what `kuiper quantize` writes")
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _parse(path: Path, data: bytes) -> Node:
    try:
        document = json.loads(data.decode(), parse_constant=_refuse, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise QuantizationError(path, None, f"is no JSON: {error}") from error
    root = Node(path, "", document)
    number = root.mapping("").take("format")
    if number != FORMAT or isinstance(number, bool):
        raise QuantizationError(path, "format", f"got {str(number)[:40]}", f"{FORMAT}")
    for key in root.items((*_KEYS, _FIGURES)):
        if key != _FIGURES:
            root.take(key)
    return root


def _refuse(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate key")
    return found


def _quantization(root: Node) -> Quantization:
    calibration = None
    if root.take("calibration") is not None:
        values = root.mapping("calibration")
        known = values.items(("data", "examples", "method", "error"))
        calibration = Calibration(
            values.text("data"),
            values.whole("examples", 1, 2**31 - 1),
            values.text("method"),
            values.number(known[-1], 0) if values.has(known[-1]) else None,
        )
    return Quantization(
        layers=root.mapping("layers").each(_activation),
        tensors=root.mapping("tensors").each(lambda node, name: _scale(node.mapping(name))),
        calibration=calibration,
        figures=read_figures(root.mapping(_FIGURES)) if root.has(_FIGURES) else None,
    )


def _activation(node: Node, name: str) -> Activation:
    text = node.text(name)
    try:
        return Activation(text)
    except ValueError as error:
        names = ", ".join(item.value for item in Activation)
        raise node.error(name, f"got {text!r:.80}", f"one of {names}") from error


def _scale(node: Node) -> TensorScale:
    node.items(("scale", "zero_point"))
    scale = node.take("scale")
    least, greatest = SCALES
    if isinstance(scale, bool) or not isinstance(scale, int | float) or not least <= scale <= greatest:
        raise node.error("scale", f"got {repr(scale)[:40]}", f"a number from {least:g} to {greatest:g}")
    return TensorScale(float(np.float32(scale)), node.whole("zero_point", 0, LARGEST))
