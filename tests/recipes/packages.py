"""Files that packages bring: weights of real networks, and photographs. `requirements.txt` lists the packages."""

import importlib.util
from pathlib import Path

import pytest


def find_package(name: str) -> Path:
    """Return the folder of a package, without importing it.

    Raises:
        ModuleNotFoundError: it is not installed.
    """
    package = importlib.util.find_spec(name)
    folders = package.submodule_search_locations if package is not None else None
    if not folders:
        raise ModuleNotFoundError(
            f"there is no package {name}: pip install {name.replace('_', '-')}", name=name
        )
    return Path(next(iter(folders)))


def need_package(name: str) -> Path:
    """Return the folder of a package; skip the test where it is not installed."""
    try:
        return find_package(name)
    except ModuleNotFoundError:
        pytest.skip(f"{name} is not installed; tests/recipes/requirements.txt lists it")
