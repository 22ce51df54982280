"""Installs the wheel of a folder in an empty virtual environment, serves a model with it, and sends a request.

Run: make dist        (or python -m tests.packaging [dist])

Nothing of the source tree is used but the model: the server runs in a temporary folder, without PYTHONPATH.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SOON = 60.0
"""Timeout of a server that does not start, respond or end, in seconds."""
_ADDRESS = re.compile(r"running on (http://[0-9.]+:\d+)")
_WHERE = "import engine, kuiper, service; print(engine.__file__, kuiper.__file__, service.__file__)"


def main() -> int:
    """Try the wheel; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("dist", nargs="?", type=Path, default=ROOT / "dist", help="folder of one wheel")
    wheels = sorted(parser.parse_args().dist.glob("*.whl"))
    if len(wheels) != 1:
        print(f"wanted is one wheel, not {len(wheels)}: {', '.join(map(str, wheels))}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        _try_wheel(wheels[0].resolve(), Path(name))
    return 0


def _try_wheel(wheel: Path, folder: Path) -> None:
    """Install, look where the packages came from, serve, ask, end."""
    binaries = _install(wheel, folder / "venv")
    models = folder / "models"
    shutil.copytree(
        ROOT / "models/digits", models / "digits", ignore=shutil.ignore_patterns("*.py", "training")
    )
    for place in _output([binaries / "python", "-c", _WHERE], folder).split():
        _require(Path(place).is_relative_to(folder), f"{place} is not the installed package")
    version = wheel.name.split("-")[1]
    reported = _output([binaries / "kuiper", "--version"], folder)
    _require(version in reported.split(), f"the wheel is version {version}, the command shows {reported}")
    _output([binaries / "kuiper", "check", models / "digits"], folder)
    _serve(binaries / "kuiper", models, folder)
    print(f"{wheel.name}: installed in an empty environment, it serves")


def _install(wheel: Path, environment: Path) -> Path:
    """Return the folder of commands of a new environment that has the wheel and what it declares, nothing else."""
    started = time.monotonic()
    venv.create(environment, with_pip=True)
    binaries = environment / "bin"
    pip = [binaries / "python", "-m", "pip", "--disable-pip-version-check", "--quiet"]
    _output([*pip, "install", wheel], environment)
    _output([*pip, "check"], environment)
    print(f"installed in {time.monotonic() - started:.1f} s")
    return binaries


def _serve(command: Path, models: Path, folder: Path) -> None:
    """Start a server, have a digit read, and end it."""
    server = subprocess.Popen(
        [command, "serve", "--port", "0", "--models", models],
        cwd=folder,
        env=_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = _address(server)
        _compare_console(address)
        response = _ask(address)
        label = response["predictions"][0][0]["label"]
        _require(label == "7", f"a 7 was read as {label}")
        backends = {layer["backend"] for layer in response["trace"]["layers"]}
        _require("native" in backends, f"no layer ran in a compiled kernel: {backends}")
        server.terminate()
        _, log = server.communicate(timeout=SOON)
        _require(server.returncode == 0, f"exit code {server.returncode}:\n{log}")
    finally:
        server.kill()
        server.wait()


def _compare_console(address: str) -> None:
    """Have each file of the console sent, and compare it with the tree's."""
    console = ROOT / "service/console"
    files = [path for path in console.rglob("*") if path.is_file()]
    _require(bool(files), "the console has no files")
    served = {f"/console/{path.relative_to(console).as_posix()}": path for path in files}
    for place, path in {"/console": console / "index.html", **served}.items():
        with urllib.request.urlopen(f"{address}{place}", timeout=SOON) as response:
            _require(response.read() == path.read_bytes(), f"{place} is not the tree's file")


def _address(server: "subprocess.Popen[str]") -> str:
    """Return where a server listens, once it says so."""
    lines = []
    for line in server.stderr or ():
        lines.append(line)
        if match := _ADDRESS.search(line):
            return match[1]
    raise RuntimeError("the server ended:\n" + "".join(lines))


def _ask(address: str) -> dict[str, Any]:
    """Return the response to the README's request, the image as the body."""
    image = (ROOT / "models/digits/samples/7.png").read_bytes()
    headers = {"Content-Type": "image/png"}
    request = urllib.request.Request(f"{address}/infer?model=digits", image, headers)
    with urllib.request.urlopen(request, timeout=SOON) as response:
        loaded: dict[str, Any] = json.load(response)
    return loaded


def _output(command: list[Any], folder: Path) -> str:
    """Run a command outside of the source tree; returns what it prints.

    Raises:
        RuntimeError: it failed.
    """
    done = subprocess.run(
        command, cwd=folder, env=_environment(), capture_output=True, text=True, timeout=600, check=False
    )
    _require(done.returncode == 0, f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Return the environment without what could lead to the source tree, or set anything."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "KUIPER_"))}


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise RuntimeError(otherwise)


if __name__ == "__main__":
    sys.exit(main())
