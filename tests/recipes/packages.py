"""Files that packages bring: weights of real networks, and photographs. `requirements.txt` lists the packages."""

import importlib.util
from pathlib import Path

import pytest


def find_package(name: str) -> Path | None:
    """Return the folder of a package, without importing it; None where it is not installed."""
    package = importlib.util.find_spec(name)
    folders = package.submodule_search_locations if package is not None else None
    return Path(next(iter(folders))) if folders else None


def need_package(name: str) -> Path:
    """Return the folder of a package; skip the test where it is not installed."""
    folder = find_package(name)
    if folder is None:
        pytest.skip(f"{name} is not installed; tests/recipes/requirements.txt lists it")
    return folder
