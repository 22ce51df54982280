from importlib import metadata

import pytest

from service import version


def test_installed_release_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "version", lambda name: f"1.2.3 of {name}")
    assert version.kuiper_version() == "1.2.3 of kuiper-serve"


def test_source_tree_is_distinguished(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(version, "version", fail)
    assert version.kuiper_version() == "0+source"
