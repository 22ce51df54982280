"""Exports PyTorch modules with the exporter itself, whatever their inputs are."""

import subprocess
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from engine.dtypes import Array
from tests.golden.make import ExportError, exporter, shape_option

SECONDS = 300


def export(module: Any, inputs: Sequence[Array], others: Sequence[Array] | None, folder: Path) -> Path:
    """Trace a module and export it; returns the path of the `.param`.

    Args:
        module: the module, in evaluation mode.
        inputs: what it is traced on.
        others: inputs of other shapes: extents in which they differ stay open.
        folder: where the files go.

    Raises:
        ExportError: the exporter failed.
    """
    path = folder / "model.pt"
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer remarks on every number taken from a shape
        traced = torch.jit.trace(module, tuple(map(torch.from_numpy, inputs)), check_trace=False)
    traced.save(str(path))
    options = [shape_option("inputshape", list(inputs)), "fp16=0"]
    if others is not None:
        options.append(shape_option("inputshape2", list(others)))
    try:
        done = subprocess.run(
            [exporter(), str(path), *options],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ExportError(f"the exporter was still running after {SECONDS} s") from error
    param = folder / "model.pnnx.param"
    if done.returncode != 0 or not param.exists():
        raise ExportError(f"the exporter failed\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
    return param
