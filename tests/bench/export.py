"""Writes a model's files. Torch is imported in a process of its own, so that it is not in the one that measures."""

import subprocess
import warnings
from typing import Any

import numpy as np

from tests.bench.models import ModelFiles

OPSET = 17
"""Version of ONNX's operators; has layer normalization as one operator."""
SECONDS = 300


def export(files: ModelFiles) -> None:
    """Write a model's files; to be called in a process of its own.

    Raises:
        subprocess.SubprocessError: the exporter failed or did not end.
    """
    import torch

    from tests.golden.networks import build

    files.folder.mkdir(parents=True, exist_ok=True)
    module = build(files.model.network, **files.model.options)
    tensor = torch.from_numpy(files.model.input())
    torch.save(module.state_dict(), files.weights)
    with torch.inference_mode():
        outputs = module(tensor)
    outputs = [outputs] if isinstance(outputs, torch.Tensor) else outputs
    np.savez(files.wanted, *(output.numpy() for output in outputs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about numbers taken from shapes, and successors of the exporter
        torch.onnx.export(
            module, (tensor,), str(files.onnx), dynamo=False, opset_version=OPSET, verbose=False
        )
        _export_pnnx(module, tensor, files)


def _export_pnnx(module: Any, tensor: Any, files: ModelFiles) -> None:
    import torch

    from tests.golden.networks.export import find_exporter

    # the same command writes PNNX's files and ncnn's
    traced = files.folder / "model.pt"
    torch.jit.trace(module, tensor, check_trace=False).save(str(traced))
    shape = ",".join(map(str, tensor.shape))
    command = [find_exporter(), traced.name, f"inputshape=[{shape}]", "fp16=0"]
    subprocess.run(command, cwd=files.folder, check=True, capture_output=True, timeout=SECONDS)
