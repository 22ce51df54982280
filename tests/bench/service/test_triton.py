"""Triton as one of the servers that are compared: how it is found, what it is given, and how it is started."""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from tests.bench.service.candidates import candidates
from tests.bench.service.results import OURS, OURS_TWICE
from tests.bench.service.served_model import ServedModel
from tests.bench.service.server import ROOT
from tests.bench.service.triton import TritonError, TritonInstallation, max_batch, write_repository

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHON = f"#!/bin/sh\nprintf '%s\\n' {VERSION} '{{packages}}' /python/lib {{numpy}}\n"
STARTS = "#!/bin/sh\nexit 1\n"
NOT_LOADED = "#!/bin/sh\necho 'libpython.so: cannot open' >&2\nexit 127\n"


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """Make an environment that has the files of Triton's wheel, with a Python that says it has them."""
    packages = tmp_path / "triton/lib/python3/site-packages"
    program(tmp_path / "triton/bin/python", PYTHON.format(packages=packages, numpy="1.26.4"))
    server = packages / "pytriton/tritonserver"
    program(server / "bin/tritonserver", STARTS)
    program(server / f"python_backend_stubs/{VERSION}/triton_python_backend_stub", STARTS)
    (server / "backends/python").mkdir(parents=True)
    return tmp_path / "triton"


@pytest.fixture
def installed(environment: Path) -> TritonInstallation:
    found = TritonInstallation.find(environment)
    assert found is not None
    return found


def stubs(environment: Path) -> list[Path]:
    return list(environment.glob("lib/*/site-packages/pytriton/tritonserver/python_backend_stubs/*/*"))


def served(folder: Path, config: str) -> ServedModel:
    (folder / "net").mkdir(parents=True)
    (folder / "net/model.toml").write_text(config)
    array = np.zeros((1, 3, 4, 5), np.float32)
    return ServedModel("net", folder, array, b"", array, array)


def test_stub_of_the_version_is_put_beside_the_backend(installed: TritonInstallation) -> None:
    assert (installed.server / "backends/python/triton_python_backend_stub").read_text() == STARTS


def test_environment_without_the_wheel_has_no_triton(tmp_path: Path) -> None:
    assert TritonInstallation.find(tmp_path) is None
    assert [one.name for one in candidates(tmp_path)] == [OURS, OURS_TWICE]


def test_version_of_python_without_a_stub_is_reported(environment: Path) -> None:
    for stub in stubs(environment):
        stub.unlink()
    with pytest.raises(TritonError, match=f"no backend for Python {VERSION}$"):
        TritonInstallation.find(environment)


def test_numpy_whose_arrays_the_backend_misreads_is_reported(environment: Path) -> None:
    program(environment / "bin/python", PYTHON.format(packages=environment, numpy="2.4.6"))
    with pytest.raises(TritonError, match=r"reads arrays of numpy 1 alone, and there is numpy 2\.4\.6$"):
        TritonInstallation.find(environment)


def test_triton_that_cannot_be_loaded_is_left_out_with_the_reason(
    environment: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program(stubs(environment)[0], NOT_LOADED)
    assert [one.name for one in candidates(environment.parent)] == [OURS, OURS_TWICE]
    reported = capfd.readouterr()
    assert reported.out == (
        "Triton is left out: its Python backend cannot be loaded: libpython.so: cannot open\n"
    )
    assert reported.err == ""


def test_triton_takes_json_and_binary(environment: Path) -> None:
    tritons = candidates(environment.parent)[2:]
    assert [one.name for one in tritons] == ["Triton, 1 instance", "Triton, instances"]
    assert {one.forms for one in tritons} == {("JSON", "binary")}


def test_server_listens_on_loopback_and_on_one_port(installed: TritonInstallation, tmp_path: Path) -> None:
    model = served(tmp_path / "models", "")
    server = installed.start(model, tmp_path, 4321, 2, {"OMP_NUM_THREADS": "1"})
    program_path, *flags = server.command
    assert Path(program_path).name == "tritonserver"
    assert {"--http-address=127.0.0.1", "--http-port=4321"} <= set(flags)
    assert {"--allow-grpc=false", "--allow-metrics=false"} <= set(flags)
    assert f"--model-repository={tmp_path / 'triton-2'}" in flags
    assert server.ready == "/v2/models/net/ready"
    assert server.environment["OMP_NUM_THREADS"] == "1"
    assert server.environment["PYTHONPATH"].split(":") == [str(ROOT), str(installed.packages)]
    assert server.environment["LD_LIBRARY_PATH"].split(":")[0] == "/python/lib"


@pytest.mark.parametrize(
    ("config", "batch"), [("", 1), ("[batching]\nmax_batch_size = 8\n", 8), ("[batching]\n", 1)]
)
def test_model_is_batched_as_this_server_batches_it(tmp_path: Path, config: str, batch: int) -> None:
    model = served(tmp_path / "models", config)
    write_repository(tmp_path / "repository", model, 3)
    text = (tmp_path / "repository/net/config.pbtxt").read_text()
    assert f"\nmax_batch_size: {batch}\n" in text
    assert "count: 3 }" in text
    assert "dims: [3, 4, 5]" in text
    assert ("dynamic_batching { }" in text) == (batch > 1)
    assert max_batch(model) == batch


def test_digits_are_batched_by_the_file_that_is_served() -> None:
    config = tomllib.loads((ROOT / "models/digits/model.toml").read_text())
    array = np.zeros((1, 1, 28, 28), np.float32)
    digits = ServedModel("digits", ROOT / "models", array, b"", array, array)
    assert max_batch(digits) == config["batching"]["max_batch_size"]
