"""Writes docs/operators.md, the page of supported operators, from the registry and the case table.

Run: python -m tests.golden.document
"""

from collections import Counter
from pathlib import Path

from engine import Layer, registry
from engine.arguments import Argument
from tests.golden.cases import families

PAGE = Path(__file__).parents[2] / "docs" / "operators.md"

HEAD = """# Supported operators

Every PNNX type that the engine runs, with the arguments its layer takes from a model: operands (`$name`), attributes
(`@name`) or parameters (`name=`). Arguments without a default are required. The last column counts the cases of the
golden table (`tests/golden/cases/`) that compare the type with PyTorch.

This page is made by `python -m tests.golden.document`; a test fails when it is out of date.

{count} types, {cases} golden cases.

| type | arguments | cases |
|---|---|---|
"""


def render() -> str:
    """Return the text of the page."""
    cases = Counter(case.type for table in families().values() for case in table)
    ours = (layer for layer in registry if layer.forward.__module__.startswith("engine."))
    layers = sorted(ours, key=lambda layer: layer.type.lower())
    rows = (f"| `{layer.type}` | {_arguments(layer)} | {cases[layer.type] or ''} |" for layer in layers)
    return HEAD.format(count=len(layers), cases=cases.total()) + "\n".join(rows) + "\n"


def _arguments(layer: Layer) -> str:
    words = ["any number of operands"] if layer.variadic else []
    words += [_argument(argument) for argument in layer.arguments if argument.name != "results"]
    if layer.collects_attributes:
        words.append("its attributes")
    return ", ".join(words)


def _argument(argument: Argument) -> str:
    if argument.required:
        return f"{argument.name}"
    default = argument.default
    if isinstance(default, tuple) and len(default) == 1:
        default = default[0]
    return f"{argument.name}={default}".replace("|", "\\|")


def main() -> None:
    """Write the page."""
    PAGE.write_text(render())


if __name__ == "__main__":
    main()
