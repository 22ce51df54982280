"""The case table: one module per layer family, each with a list `CASES`."""

from importlib import import_module
from pkgutil import iter_modules

from tests.golden.case import LayerCase


def families() -> dict[str, list[LayerCase]]:
    """Return family name -> its cases."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").CASES for name in names}
