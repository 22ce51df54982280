"""Looks at a model before it is served: can it run, what does it take, and where does it differ from a reference."""

from engine.check.command import main
from engine.check.comparison import Difference, compare_backends, compare_layers, compare_outputs
from engine.check.report import Report, inspect

__all__ = ["Difference", "Report", "compare_backends", "compare_layers", "compare_outputs", "inspect", "main"]
