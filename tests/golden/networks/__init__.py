"""Torch definitions of the networks that golden files and benchmarks are made from.

Nothing here is needed to run the tests: the files made from these networks are committed.
"""

from .export import ExportError, export
from .registry import NETWORKS, build

__all__ = ["NETWORKS", "ExportError", "build", "export"]
