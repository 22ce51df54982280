"""Makes small PNNX files from the lines of their operators."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engine import LayerRegistry, RuntimeGraph, registry
from engine.dtypes import Array


def write_model(
    folder: Path, lines: str, attributes: Mapping[str, Array] | None = None, name: str = "model"
) -> Path:
    """Write `name.param` and `name.bin`; returns the path of the `.param`.

    `lines` holds one operator a line; `attributes` maps archive entries (`conv.weight`) to arrays.
    """
    operators = [line.strip() for line in lines.strip().splitlines()]
    operands = set()
    for line in operators:
        words = line.split()
        taken, given = int(words[2]), int(words[3])
        operands.update(words[4 : 4 + taken + given])
    param = folder / f"{name}.param"
    param.write_text("\n".join(["7767517", f"{len(operators)} {len(operands)}", *operators]) + "\n")
    with zipfile.ZipFile(folder / f"{name}.bin", "w") as archive:
        for entry, array in (attributes or {}).items():
            archive.writestr(entry, array.tobytes())
    return param


def make_graph(
    folder: Path,
    lines: str,
    attributes: Mapping[str, Array] | None = None,
    *,
    build: bool = True,
    layers: LayerRegistry = registry,
    backend: str | None = None,
    threads: int = 1,
    **options: Any,
) -> RuntimeGraph:
    """Write a model and open it, built unless set otherwise; `options` are others of `RuntimeGraph`."""
    param = write_model(folder, lines, attributes)
    graph = RuntimeGraph(param, layers=layers, backend=backend, threads=threads, **options)
    if build:
        graph.build()
    return graph
