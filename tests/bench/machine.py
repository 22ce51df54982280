"""What the benchmark ran on."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from engine.compiler.emit.target import host_target

PACKAGES = ("numpy", "llvmlite", "onnxruntime", "openvino", "ncnn", "torch")


def machine(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the processor, its cores and vector instructions, and the versions of Python and some packages."""
    versions = [f"Python {platform.python_version()}"]
    for package in packages:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"no {package}")
    return {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "instructions": host_target().name,
        "versions": ", ".join(versions),
    }


def processor() -> str:
    """Name the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
