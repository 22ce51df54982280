"""The notebook of the course's page: its text and its examples, as cells."""

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.docs.generated.application import ROOT

PAGE = ROOT / "docs" / "course.md"
NOTEBOOK = ROOT / "docs" / "assets" / "course.ipynb"

_BLOCK = re.compile(r"^```(python|sh|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:|#)([^)]+)\)")
_START = """import os
from pathlib import Path

# examples name files as seen from the root of the checkout
root = next(folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "models" / "digits").is_dir())
os.chdir(root)
"""


def render() -> str:
    """Return the notebook, in version 4.5 of its format."""
    cells = [_code(_START), *_cells(PAGE.read_text(encoding="utf-8"))]
    document = {
        "cells": [cell | {"id": f"cell-{place}"} for place, cell in enumerate(cells)],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _cells(text: str) -> Iterator[dict[str, Any]]:
    position = 0
    for block in _BLOCK.finditer(text):
        yield from _markdown(text[position : block.start()])
        language, source = block.groups()
        yield _code(source if language == "python" else _shell(source, language))
        position = block.end()
    yield from _markdown(text[position:])


def _shell(source: str, language: str) -> str:
    """Return commands as IPython runs them; of a session, without what they print."""
    lines = source.splitlines()
    commands = lines if language == "sh" else [line[2:] for line in lines if line.startswith("$ ")]
    return "".join(f"!{command}\n" for command in commands)


def _markdown(text: str) -> Iterator[dict[str, Any]]:
    if text.strip():
        yield {
            "cell_type": "markdown",
            "metadata": {},
            "source": _lines(_LINK.sub(r"](../\1)", text.strip())),
        }


def _code(source: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "outputs": [],
        "source": _lines(source.rstrip("\n")),
    }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
