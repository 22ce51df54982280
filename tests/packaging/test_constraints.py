"""What the image installs is pinned by version and hash, and is what pyproject.toml allows."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LISTS = ["constraints.txt", "build-constraints.txt", "release-constraints.txt"]
PYTHONS = ["3.11", "3.12", "3.13"]
_HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")


def pins(name: str) -> Iterator[tuple[Requirement, int]]:
    """Yield each requirement of a file, and how many hashes it has."""
    text = (DEPLOY / name).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield Requirement(line.split("--hash")[0]), len(_HASH.findall(line))


def versions(name: str, python: str) -> dict[str, str]:
    """Return the version of each package that is installed on Linux."""
    place = environment(python)
    found: dict[str, str] = {}
    for pin, _ in pins(name):
        if pin.marker is None or pin.marker.evaluate(place):
            assert canonicalize_name(pin.name) not in found, f"{pin.name} is pinned twice"
            (only,) = pin.specifier
            found[canonicalize_name(pin.name)] = only.version
    return found


def environment(python: str) -> dict[str, str]:
    """Return what markers are asked for."""
    here = {key: str(value) for key, value in default_environment().items()}
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    return here | linux | {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}


@pytest.mark.parametrize("name", LISTS)
def test_each_package_is_pinned_with_hashes(name: str) -> None:
    for pin, hashes in pins(name):
        (only,) = pin.specifier
        assert only.operator == "==", pin
        assert hashes, pin


@pytest.mark.parametrize("name", LISTS)
def test_no_index_is_named(name: str) -> None:
    text = (DEPLOY / name).read_text()
    assert "://" not in text
    assert "index" not in text


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize(
    ("name", "declared"),
    [
        ("constraints.txt", PROJECT["project"]["dependencies"]),
        ("build-constraints.txt", PROJECT["build-system"]["requires"]),
        ("release-constraints.txt", PROJECT["project"]["optional-dependencies"]["release"]),
    ],
)
def test_pins_are_what_is_declared(name: str, declared: list[str], python: str) -> None:
    found, place = versions(name, python), environment(python)
    for requirement in map(Requirement, declared):
        if requirement.marker is None or requirement.marker.evaluate(place):
            assert requirement.specifier.contains(found[canonicalize_name(requirement.name)]), requirement


@pytest.mark.parametrize("python", PYTHONS)
def test_what_dependencies_need_is_pinned(python: str) -> None:
    """As far as the versions that are pinned are those that are installed here."""
    found, place = versions("constraints.txt", python), environment(python)
    for name, version in found.items():
        try:
            installed = distribution(name)
        except ModuleNotFoundError:  # of another platform, or of another Python
            continue
        if installed.version != version:
            continue
        for requirement in map(Requirement, installed.requires or ()):
            if requirement.marker is None or requirement.marker.evaluate(place):
                pinned = found.get(canonicalize_name(requirement.name))
                assert pinned is not None, f"{name} needs {requirement}"
                assert requirement.specifier.contains(pinned), f"{name} needs {requirement}"


def test_image_installs_nothing_else() -> None:
    lines = (ROOT / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    commands = [part for line in lines if line.startswith("RUN") for part in line.split("&&")]
    installs = [part for part in commands if re.search(r"\bpip (install|wheel)\b", part)]
    assert installs
    for command in installs:
        assert "--require-hashes" in command or "--no-deps" in command, command
