"""Check of a model before it is served: whether it runs, its inputs, and where it differs from a reference."""

from engine.check.archives import UNREADABLE, array_problem, load_inputs
from engine.check.check import CheckOptions, check_model
from engine.check.closeness import magnitude
from engine.check.comparison import Difference, compare_backends, compare_layers, compare_outputs
from engine.check.document import describe_report
from engine.check.report import Report, inspect
from engine.check.shapes import choose_shapes
from engine.compiler.program.trial import trial_inputs

__all__ = [
    "UNREADABLE",
    "CheckOptions",
    "Difference",
    "Report",
    "array_problem",
    "check_model",
    "choose_shapes",
    "compare_backends",
    "compare_layers",
    "compare_outputs",
    "describe_report",
    "inspect",
    "load_inputs",
    "magnitude",
    "trial_inputs",
]
