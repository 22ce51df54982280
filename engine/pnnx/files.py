"""A model's two files, read and written together."""

import os

from engine.pnnx.model import Graph

PathLike = str | os.PathLike[str]


def read(param_path: PathLike, bin_path: PathLike) -> Graph:
    """Read a model."""
    raise OSError(param_path, bin_path)


def write(graph: Graph, param_path: PathLike, bin_path: PathLike) -> None:
    """Write a model."""
    raise OSError(graph, param_path, bin_path)
