"""Export a torch module to a PNNX pair of files with the `pnnx` command."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

Shapes = Sequence[Sequence[int]]

TIMEOUT_SECONDS = 600


class ExportError(RuntimeError):
    """The exporter is missing, failed, or wrote no files."""


def export(
    module: nn.Module,
    input_shapes: Shapes,
    folder: Path | str,
    *,
    name: str = "model",
    fp16: bool = False,
    moduleop: str | None = None,
    other_shapes: Shapes | None = None,
) -> tuple[Path, Path]:
    """Trace `module` and write `<name>.pnnx.param` and `<name>.pnnx.bin` into `folder`.

    Args:
        module: The network; traced in evaluation mode on random f32 inputs.
        input_shapes: One shape per input.
        folder: Where the two files go; made if missing. The exporter's by-products never reach it.
        name: Stem of the file names.
        fp16: The exporter's switch of that name. Current releases heed it in another format's files and write
            the same f32 .bin either way.
        moduleop: Class path to keep as a single operator, e.g. "models.yolo.Detect".
        other_shapes: Second set of input shapes; dimensions that differ become `?` and the graph stays free
            of constants derived from them.

    Returns:
        The paths of the .param and of the .bin.

    Raises:
        ExportError: no `pnnx` was found, it failed, or it did not write both files.
    """
    exporter = find_exporter()
    folder = Path(folder)
    with tempfile.TemporaryDirectory() as scratch:
        traced = Path(scratch) / f"{name}.pt"
        _trace(module, input_shapes).save(str(traced))
        command = [exporter, str(traced), f"inputshape={_shapes(input_shapes)}", f"fp16={int(fp16)}"]
        if other_shapes is not None:
            command.append(f"inputshape2={_shapes(other_shapes)}")
        if moduleop is not None:
            command.append(f"moduleop={moduleop}")
        _run(command, Path(scratch))
        made = [Path(scratch) / f"{name}.pnnx.{suffix}" for suffix in ("param", "bin")]
        missing = [path.name for path in made if not path.is_file()]
        if missing:
            raise ExportError(f"{' '.join(command)} ended without writing {' and '.join(missing)}")
        folder.mkdir(parents=True, exist_ok=True)
        param, binary = (Path(shutil.copy(path, folder / path.name)) for path in made)
    return param, binary


def find_exporter() -> str:
    """Path of the `pnnx` command: the one beside this Python, else the first on PATH.

    Raises:
        ExportError: there is none.
    """
    found = shutil.which("pnnx", path=str(Path(sys.executable).parent)) or shutil.which("pnnx")
    if found is None:
        raise ExportError(f"no pnnx command beside {sys.executable} or on PATH; pip install pnnx")
    return found


def _trace(module: nn.Module, input_shapes: Shapes) -> torch.jit.ScriptModule:
    inputs = tuple(torch.rand(*shape) for shape in input_shapes)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tracer remarks on every Python number taken from a shape
        return torch.jit.trace(module.eval(), inputs, check_trace=False)


def _shapes(shapes: Shapes) -> str:
    return ",".join(f"[{','.join(str(size) for size in shape)}]" for shape in shapes)


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ExportError(f"{' '.join(command)} was still running after {TIMEOUT_SECONDS} s") from error
    if done.returncode != 0:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise ExportError(f"{' '.join(command)} ended with exit code {done.returncode}:\n{last}")
