"""`kuiper doctor`: what this machine offers, what is missing, and the command that mends it."""

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

import typer

from engine import KuiperError, ModelFilesError, code_folder_in_use, describe_host, model_folders
from service.commands.failure import BAD
from service.commands.output import Json, add_rows, console, print_json, table
from service.config.environment import doubtful_variables
from service.config.fitting import describe_fit, fit_to_memory
from service.config.machine import share_machine, this_machine
from service.config.setting_file import SettingsError
from service.config.settings import load_settings
from service.config.store_url import folder_of
from service.version import install_command, kuiper_version

EXAMPLE = "kuiper doctor"

_EXTRAS = {
    "opentelemetry-sdk": ("spans of requests", install_command("otel")),
    "torch": ("kuiper export of PyTorch's models", install_command("export")),
    "pnnx": ("kuiper export", install_command("export")),
    "onnxruntime": ("kuiper bench --onnx", "pip install onnxruntime"),
}
"""Packages that some commands need -> what for, and how to install them."""
_NEEDED = (
    "numpy",
    "llvmlite",
    "fastapi",
    "uvicorn",
    "pydantic",
    "pillow",
    "orjson",
    "httptools",
    "httpx",
    "typer",
    "rich",
)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was looked at.

    Attributes:
        what: what it is.
        found: how it is, in words.
        state: whether that is good; optional: only some commands need it.
        cure: the command that mends it; None where nothing has to be mended.
    """

    what: str
    found: str
    state: Literal["good", "optional", "bad"] = "good"
    cure: str | None = None


def run(json: Json = False) -> None:
    """Check what this machine offers to the engine and the server, and suggest fixes.

    The exit code is 1 where a server would not start, or would be far slower than it could be.
    """
    findings = list(examine())
    if json:
        print_json([asdict(finding) for finding in findings])
    else:
        rows = ((finding.state, finding.what, finding.found, finding.cure or "") for finding in findings)
        console().print(add_rows(table("", "what", "found", "fix"), rows))
    if any(finding.state == "bad" for finding in findings):
        raise typer.Exit(BAD)


def examine() -> Iterator[Finding]:
    """Yield what is found on this machine."""
    yield Finding(
        "Kuiper Serve", f"{kuiper_version()} on Python {platform.python_version()}, {platform.platform()}"
    )
    yield from _compiler()
    yield from _limits()
    yield from _packages()
    yield _cache()
    yield from _models()
    yield from (
        Finding("environment", warning, "bad", "unset it") for warning in doubtful_variables(os.environ)
    )


def _compiler() -> Iterator[Finding]:
    try:
        host = describe_host()
    except (KuiperError, OSError, ValueError) as error:
        yield Finding("compiler", str(error), "bad", "pip install --upgrade llvmlite")
        return
    if host is None:
        yield Finding("compiler", "not in use: numpy runs all layers", "bad", "unset KUIPER_BACKEND")
        return
    vectors = f"{host.vectors}: vectors of {host.lanes} float32, {host.registers} registers"
    yield Finding("processor", ", ".join([_processor(), vectors, *host.instructions]))
    yield Finding("LLVM", host.llvm)


def _limits() -> Iterator[Finding]:
    try:
        settings = load_settings({})
    except SettingsError as error:
        yield Finding("settings", str(error), "bad", "kuiper serve --help")
        return
    share_machine(settings.processes)
    machine = this_machine()
    share, *memory = describe_fit(fit_to_memory(settings, machine.memory), machine)
    processes = "1 process" if settings.processes == 1 else f"{settings.processes} processes, each"
    yield Finding("processes, workers, threads", f"{processes} of {share}")
    yield from (Finding("memory", line) for line in memory)


def _packages() -> Iterator[Finding]:
    for name in _NEEDED:
        found = _version(name)
        if found is None:
            yield Finding(name, "missing", "bad", install_command())
    yield Finding("packages", ", ".join(f"{name} {_version(name)}" for name in _NEEDED))
    for name, (purpose, cure) in _EXTRAS.items():
        found = _version(name)
        if found is None:
            yield Finding(name, f"not installed; {purpose} needs it", "optional", cure)
        else:
            yield Finding(name, f"{found}, {_torch_wheel()}" if name == "torch" else found)


def _torch_wheel() -> str:
    """Return which of PyTorch's wheels is installed; that for GPUs requires the libraries of these."""
    has_gpu = any(each.startswith(("nvidia-", "cuda-")) for each in requires("torch") or ())
    return "with gigabytes of GPU libraries, which nothing here uses" if has_gpu else "without GPU libraries"


def _cache() -> Finding:
    folder = code_folder_in_use()
    if folder is None:
        cure = "set KUIPER_CACHE to a folder that can be written"
        return Finding("compiled code", "not cached: each start compiles again", "optional", cure)
    return Finding("compiled code", f"cached in {folder}")


def _models() -> Iterator[Finding]:
    try:
        folder = folder_of(load_settings({}).models)
        yield Finding("models", f"{', '.join(model_folders(folder))} in {folder}")
    except (ModelFilesError, KuiperError, OSError) as error:
        yield Finding("models", str(error), "optional", "kuiper serve --models DIR")
    except SettingsError:
        return  # reported already


def _processor() -> str:
    """Return the name of the processor as Linux reports it, else its kind."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine() or sys.platform)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
