"""Opens exported graphs, so that what is compared is what was compiled."""

from pathlib import Path
from typing import Any

from engine import RuntimeGraph


def open_graph(param: Path, backend: str = "native", **options: Any) -> RuntimeGraph:
    """Return the graph of a file, built; `options` are others of `RuntimeGraph`.

    Nothing verifies its programs unless `verify` says so: numpy would run in the place of wrong ones.
    """
    graph = RuntimeGraph(param, backend=backend, **({"verify": "off"} | options))
    graph.build()
    return graph
