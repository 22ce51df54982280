"""What users import is what the engine and the client export, and the reference lists it."""

import re
from pathlib import Path

import engine
import kuiper
from service import client

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"


def test_names_are_those_of_the_engine_and_of_the_client() -> None:
    for name in kuiper.__all__:
        (source,) = [package for package in (engine, client) if name in package.__all__]
        assert getattr(kuiper, name) is getattr(source, name)


def test_all_errors_of_the_client_are_there() -> None:
    assert {name for name in client.__all__ if name.endswith("Error")} < set(kuiper.__all__)


def test_the_reference_lists_all_names_once() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## What `kuiper` has\n")[2].partition("\n## ")[0]
    assert sorted(re.findall(r"`(\w+)`", section)) == sorted(kuiper.__all__)
