"""Triton's own server, as the wheel of nvidia-pytriton has it: found, given a model, and started.

The wheel holds the server and its Python backend, which runs a model's `execute` in a process for each instance. The
program of such a process, the stub, is looked for beside the backend. There is one for each version of Python.
"""

import filecmp
import json
import os
import shutil
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import ROOT, MeasuredServer

STUB = "triton_python_backend_stub"
NOT_LOADED = 127
"""Exit code of a program that lacks a shared library."""
DESCRIPTION = """
import sys, sysconfig
from importlib.metadata import version
print(f"{sys.version_info.major}.{sys.version_info.minor}")
print(sysconfig.get_path("purelib"))
print(sysconfig.get_config_var("LIBDIR"))
print(version("numpy"))
"""
"""What an environment's Python is asked: its version, where its packages and its library are, and numpy's version."""
# the stub's interpreter takes no notice of PYTHONPATH
MODEL = """import os, sys
sys.path[:0] = os.environ["PYTHONPATH"].split(os.pathsep)
from tests.bench.service.peers.triton_model import TritonPythonModel
"""
CONFIG = """name: {name}
backend: "python"
max_batch_size: {batch}
input [{{ name: "0" data_type: TYPE_FP32 dims: {shape} }}]
output [{{ name: "scores" data_type: TYPE_FP32 dims: [-1] }}]
instance_group [{{ kind: KIND_CPU count: {instances} }}]
{batching}
"""


class TritonError(Exception):
    """Triton is installed, but does not run here; says why."""


@dataclass(frozen=True, slots=True)
class TritonInstallation:
    """Triton in an environment of its own.

    Attributes:
        packages: where the environment's packages are.
        libraries: where the library of its Python is.
    """

    packages: Path
    libraries: Path

    @classmethod
    def find(cls, environment: Path) -> Self | None:
        """Return what an environment has of Triton, ready to be started; None where it has none.

        Raises:
            TritonError: its backend does not run with the environment's Python.
        """
        if not any(environment.glob("lib/python*/site-packages/pytriton/tritonserver/bin/tritonserver")):
            return None
        command = [str(environment / "bin/python"), "-c", DESCRIPTION]
        reported = subprocess.run(command, capture_output=True, check=True, text=True, cwd=environment).stdout
        version, packages, libraries, numpy = reported.splitlines()
        if int(numpy.partition(".")[0]) > 1:  # it answers none of their bytes, at status 200
            raise TritonError(f"its backend reads arrays of numpy 1 alone, and there is numpy {numpy}")
        found = cls(Path(packages), Path(libraries))
        found._place_stub(version)
        return found

    @property
    def server(self) -> Path:
        """The folder of the server."""
        return self.packages / "pytriton/tritonserver"

    @property
    def environment(self) -> dict[str, str]:
        """Variables that the server and its backend need."""
        libraries = [str(self.libraries), os.environ.get("LD_LIBRARY_PATH", "")]
        return {
            "LD_LIBRARY_PATH": os.pathsep.join(filter(None, libraries)),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.packages)]),
        }

    def command(self, repository: Path, port: int) -> list[str]:
        """Return the command that serves a model repository over HTTP, on 127.0.0.1 alone."""
        return [
            str(self.server / "bin/tritonserver"),
            f"--model-repository={repository}",
            f"--backend-directory={self.server / 'backends'}",
            "--http-address=127.0.0.1",
            f"--http-port={port}",
            "--allow-grpc=false",
            "--allow-metrics=false",
        ]

    def start(
        self, model: ServedModel, scratch: Path, port: int, instances: int, variables: Mapping[str, str]
    ) -> MeasuredServer:
        """Return a server for a model, with so many processes that run it."""
        repository = scratch / f"triton-{instances}"
        write_repository(repository, model, instances)
        environment = {**variables, **self.environment}
        ready = f"/v2/models/{model.name}/ready"
        return MeasuredServer(self.command(repository, port), port, ready, environment)

    def _place_stub(self, version: str) -> None:
        """Copy the stub of a version of Python to where the backend looks for it, and see that it can be loaded."""
        source, target = (
            self.server / part / STUB for part in (f"python_backend_stubs/{version}", "backends/python")
        )
        if not source.exists():
            raise TritonError(f"nvidia-pytriton has no backend for Python {version}")
        if not (target.exists() and filecmp.cmp(source, target, shallow=False)):  # perhaps a server runs it
            shutil.copy(source, target)
        # without arguments it only says that it wants some
        tried = subprocess.run(
            [target], capture_output=True, check=False, text=True, env=os.environ | self.environment
        )
        if tried.returncode == NOT_LOADED:
            raise TritonError(f"its Python backend cannot be loaded: {tried.stderr.strip()}")


def write_repository(folder: Path, model: ServedModel, instances: int) -> None:
    """Write a model repository with one model, which is batched as this server batches it."""
    version = folder / model.name / "1"
    version.mkdir(parents=True, exist_ok=True)
    (version / "model.py").write_text(MODEL)
    batch = max_batch(model)
    config = CONFIG.format(
        name=json.dumps(model.name),
        batch=batch,
        shape=list(model.array.shape[1:]),
        instances=instances,
        batching="dynamic_batching { }" if batch > 1 else "",
    )
    (folder / model.name / "config.pbtxt").write_text(config)


def max_batch(model: ServedModel) -> int:
    """Return how many rows this server runs at once, at most: what the model's `model.toml` says, or 1."""
    config = tomllib.loads((model.folder / model.name / "model.toml").read_text())
    rows: int = config.get("batching", {}).get("max_batch_size", 1)
    return rows
