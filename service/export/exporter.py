"""Runs pnnx, the exporter: a process of its own, with a limit of time, which is gone when the export is over."""

import contextlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from engine import Array, pnnx_name
from service.export import guard
from service.export.errors import ExportError, TimeLimitError
from service.export.extra import INSTALL
from service.export.torch_graph import own_line

_SAID = re.compile(r"error|exception|fail|abort|terminate|unsupported|unknown", re.IGNORECASE)
_SHOWN = 3
_MAX_SIGNAL = 64
_FILES_WRITTEN = b"############# pass_ncnn"
"""What the exporter says once the files are written: the rest is for ncnn, and takes most of its memory."""
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Exported:
    """What the exporter wrote.

    Attributes:
        param: the graph.
        bin: the weights.
        remark: what was odd about it, as a sentence; empty where nothing was.
    """

    param: Path
    bin: Path
    remark: str


def exporter_version() -> str:
    """Return the version of the exporter, `?` where it is not known."""
    try:
        return importlib.metadata.version("pnnx")
    except importlib.metadata.PackageNotFoundError:
        return "?"


def find_exporter() -> Path:
    """Return the exporter's program: that of the package in this environment, else the first on the path.

    Raises:
        ExportError: there is none.
    """
    package = importlib.util.find_spec("pnnx")  # importing it would import all of PyTorch
    for folder in (package.submodule_search_locations or ()) if package is not None else ():
        for name in ("pnnx", "pnnx.exe"):
            if (Path(folder) / name).is_file():
                return Path(folder) / name
    beside = shutil.which("pnnx", path=str(Path(sys.executable).parent)) or shutil.which("pnnx")
    if beside is None:
        raise ExportError(f"the exporter, pnnx, is not installed: {INSTALL}")
    return Path(beside)


def run_exporter(
    model: Path, first: Sequence[Array], second: Sequence[Array] | None, seconds: float
) -> Exported:
    """Have the exporter translate a file.

    Args:
        model: the file; all that the exporter writes comes into its folder.
        first: inputs, whose shapes and types the exporter gets.
        second: others, whose differences are the dynamic sizes; None for none.
        seconds: how long it may take.

    Raises:
        ExportError: it took longer, or failed before it wrote both files.
    """
    param, binary = model.with_suffix(".pnnx.param"), model.with_suffix(".pnnx.bin")
    for path in (param, binary):
        path.unlink(missing_ok=True)
    command = [str(find_exporter()), model.name, f"inputshape={_spelled(first)}"]
    if second is not None:
        command.append(f"inputshape2={_spelled(second)}")
    code, said = _run(command, model.parent, seconds)
    if not (param.is_file() and binary.is_file() and param.stat().st_size):
        raise ExportError(_failure(code, said))
    ended = (
        f"the exporter ended with {_word(code)} after it had written the files, which are used"
        if code
        else ""
    )
    return Exported(param, binary, ended)


def _run(command: Sequence[str], folder: Path, seconds: float) -> tuple[int, str]:
    log = folder / "exporter.log"
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  # no shell, and all names are this package's own
            [sys.executable, "-I", "-S", guard.__file__, *command],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},
            start_new_session=True,
        )
        try:
            code = _wait(process, log, seconds)
        except subprocess.TimeoutExpired as error:
            raise TimeLimitError(
                f"the exporter was still running after {seconds:g} s and was ended; --time-limit allows it more"
            ) from error
        finally:
            _end(process)
    if guard.SIGNALLED < code <= guard.SIGNALLED + _MAX_SIGNAL:
        code = guard.SIGNALLED - code
    return code, log.read_bytes().decode(errors="replace")


def _wait(process: subprocess.Popen[bytes], log: Path, seconds: float) -> int:
    """Return the exit code of the exporter; 0 as soon as it has written its files."""
    deadline = monotonic() + seconds
    while True:
        try:
            return process.wait(min(_POLL_SECONDS, max(0.0, deadline - monotonic())))
        except subprocess.TimeoutExpired:
            if _FILES_WRITTEN in log.read_bytes():
                return 0
            if monotonic() >= deadline:
                raise


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and those that it started, if it still runs."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _failure(code: int, said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if _SAID.search(line) and not line.startswith(("customop", "moduleop"))]
    shown = "; ".join((telling or lines)[-_SHOWN:]) or "it said nothing"
    where = own_line(said)
    place = f". It had come to {where}" if where else ""
    return f"the exporter failed with {_word(code)}: {shown}{place}"


def _word(code: int) -> str:
    """Return an exit code in words."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"


def _spelled(arrays: Sequence[Array]) -> str:
    return ",".join(f"[{','.join(map(str, array.shape))}]{pnnx_name(array.dtype)}" for array in arrays)
