"""The packages of the engine and of the service, each with the beginning of its docstring."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.docs.generated.application import ROOT
from tests.docs.generated.markdown import definitions

_SHORT = 4
"""Words of a title that says less than the explanation that follows it."""


def render_engine() -> str:
    """Return the list of the engine's packages."""
    return _list("engine")


def render_service() -> str:
    """Return the list of the service's packages."""
    return _list("service")


def _list(name: str) -> str:
    return definitions(
        (f"{folder.relative_to(ROOT).as_posix()}/", "", _summary(folder)) for folder in packages(ROOT / name)
    )


def packages(root: Path) -> Iterator[Path]:
    """Yield a package and all packages within it, in order of their names."""
    yield root
    for init in sorted(root.glob("*/__init__.py")):
        yield from packages(init.parent)


def _summary(folder: Path) -> str:
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    title, _, explanation = " ".join(text.partition("\n\n")[0].split()).removesuffix(".").partition(": ")
    return explanation if explanation and len(title.split()) <= _SHORT else title
