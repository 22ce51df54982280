"""The command: `python -m engine.check MODEL`, and the same as `kuiper check MODEL`.

Its exit code is 0 where the model runs and agrees with what it was compared with, 1 where it does not or cannot be
read, 2 where that cannot be determined: wrong arguments, or unknown input shapes.
"""

import argparse
import io
import json
import logging
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from engine.backend import Backend, choose_backend
from engine.check.archives import in_order, inputs_among, load_arrays, load_inputs
from engine.check.calibrated_inputs import calibrated_inputs
from engine.check.comparison import compare_backends, compare_layers, compare_outputs
from engine.check.document import describe_report
from engine.check.outcome import print_backends, print_layers, print_outputs
from engine.check.precision_loss import compare_precision, print_precision
from engine.check.report import Report, inspect
from engine.check.shapes import choose_shapes
from engine.command_parser import CommandParser
from engine.compiler.program.trial import trial_inputs
from engine.dtypes import Array
from engine.errors import InputError, KuiperError
from engine.graph import RuntimeGraph
from engine.model_folder import files_at
from engine.ports import check_inputs
from engine.precision import Precision
from engine.quantization.sidecar import read_sidecar
from engine.verification import Verify

GOOD, BAD, UNKNOWN = 0, 1, 2
"""Exit codes."""

Given = list[Array] | dict[str, Array]


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a model; returns the exit code: 0 good, 1 not good, 2 not determined.

    Raises:
        SystemExit: the arguments are wrong, with exit code 2, or help was asked for.
    """
    options = make_parser().parse_args(arguments)
    logging.getLogger("engine").addHandler(logging.NullHandler())  # the report has the warnings
    return _check_as_json(options) if options.json else _try_check(options, _print_report)


def _check_as_json(options: argparse.Namespace) -> int:
    """Check a model, and print one JSON document: its report, what comparisons found, and the exit code."""
    reports: list[Report] = []
    comparison = io.StringIO()
    with redirect_stdout(comparison):
        code = _try_check(options, reports.append)
    document = {
        "exit_code": code,
        "report": describe_report(reports[0]) if reports else None,
        "comparison": comparison.getvalue().splitlines(),
    }
    print(json.dumps(document, indent=2))
    return code


def _try_check(options: argparse.Namespace, tell: Callable[[Report], None]) -> int:
    try:
        return _check(options, tell)
    except BrokenPipeError:
        raise  # nobody reads any more: there is nobody to tell
    except (KuiperError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD


def _print_report(report: Report) -> None:
    for line in report.lines():
        print(line)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = CommandParser(
        prog="kuiper check",
        description="Tell whether a PNNX model runs, which inputs it takes, and where it differs from a reference.",
        epilog="Exit code: 0 if the model runs and agrees, 1 if it does not, 2 if that cannot be determined: "
        "the arguments are wrong, or the shapes of the inputs are unknown.",
    )
    parser.add_argument(
        "model",
        type=Path,
        help="a .param file, or the folder of a model; of its versions, the highest is checked",
    )
    parser.add_argument(
        "bin", type=Path, nargs="?", help="the .bin file (default: the one beside the .param file)"
    )
    parser.add_argument(
        "--against",
        nargs=2,
        type=Path,
        metavar=("INPUTS", "OUTPUTS"),
        help="run on the arrays of the file INPUTS, and compare the results with those of the file OUTPUTS",
    )
    parser.add_argument(
        "--layers",
        type=Path,
        metavar="REFERENCE",
        help="find the first operator that differs from the arrays of this file, each named after an operand or "
        "an operator; NAME.0 is the first of several outputs",
    )
    parser.add_argument(
        "--backend",
        choices=("native", "numpy", "both"),
        help="what runs the model: compiled kernels (native) or numpy layers, by default what a server would choose; "
        "both: compare the two operator by operator, on the given inputs or on random ones",
    )
    parser.add_argument(
        "--precision",
        choices=[item.value for item in Precision],
        default=Precision.F32.value,
        help="what compiled kernels round the operands of products to (default f32: nothing)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="threads that a run uses (default 1)"
    )
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        type=_shape,
        metavar="DIMS",
        help="shape of an input, such as 1,3,224,224; repeat it for each input",
    )
    parser.add_argument(
        "--tolerance",
        type=_tolerance,
        default=1e-3,
        help="largest difference that is ignored, relative to the value and to the largest of its tensor "
        "(default 1e-3)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, for programs")
    parser.add_argument(
        "--ratio",
        type=_decibels,
        metavar="DECIBELS",
        help="with --precision: find the first layer whose result has a lower ratio of signal to noise against f32",
    )
    return parser


def _shape(text: str) -> tuple[int, ...]:
    try:
        shape = tuple(int(dim) for dim in text.split(",")) if text else ()
    except ValueError:
        shape = (-1,)
    if any(dim < 0 for dim in shape):
        expected = "whole numbers with commas between, as in 1,3,224,224"
        raise argparse.ArgumentTypeError(f"{text!r} is no shape; expected {expected}")
    return shape


def _tolerance(text: str) -> float:
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = math.nan
    if not 0 <= tolerance < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no tolerance; expected a number from 0 on, as 1e-3")
    return tolerance


def _decibels(text: str) -> float:
    try:
        ratio = float(text)
    except ValueError:
        ratio = math.nan
    if not math.isfinite(ratio):
        raise argparse.ArgumentTypeError(f"{text!r} is no ratio; expected decibels, as 30")
    return ratio


def _check(options: argparse.Namespace, tell: Callable[[Report], None]) -> int:
    backend = choose_backend(Backend.NATIVE if options.backend == "both" else options.backend)
    graph = _open(options, backend)
    inputs = _given_inputs(graph, options)
    report = inspect(graph, options.shape or _shapes_of(graph, inputs))
    tell(report)
    if report.unsupported or report.problem is not None:
        return BAD
    if report.unchecked is not None:
        return UNKNOWN
    if report.refused:  # the program that is not used is the one to look into
        graph = _open(options, backend, Verify.OFF)
        graph.build()
    different = _compare(graph, inputs, options) or bool(report.refused)
    if options.ratio is not None:
        different |= _compare_precision(graph, inputs, options, backend)
    if options.backend == "both":
        plain = _open(options, Backend.NUMPY)
        plain.build()
        if options.against is not None:
            different |= _compare_outputs(plain, inputs, options)
        different |= _compare_backends(graph, plain, inputs, options)
    return BAD if different else GOOD


def _open(options: argparse.Namespace, backend: Backend, verify: Verify = Verify.ALWAYS) -> RuntimeGraph:
    param, binary = files_at(options.model)
    return RuntimeGraph(
        param,
        options.bin or binary,
        backend=backend,
        threads=options.threads,
        verify=verify,
        precision=options.precision,
    )


def _given_inputs(graph: RuntimeGraph, options: argparse.Namespace) -> Given | None:
    """Return the inputs that the caller brings, None where there are none."""
    graph.init()
    if options.against is not None:
        return load_inputs(graph, options.against[0])
    return inputs_among(graph, load_arrays(options.layers)) if options.layers is not None else None


def _shapes_of(graph: RuntimeGraph, inputs: Given | None) -> list[tuple[int, ...]]:
    if inputs is None:
        return []
    return [array.shape for array in check_inputs(graph.inputs, inputs).values()]


def _compare(graph: RuntimeGraph, inputs: Given | None, options: argparse.Namespace) -> bool:
    """Compare with what the caller brings; tells whether it differs."""
    different = False
    if inputs is not None and options.against is not None:
        different |= _compare_outputs(graph, inputs, options)
    if inputs is not None and options.layers is not None:
        reference = load_arrays(options.layers)
        different |= print_layers(compare_layers(graph, inputs, reference, options.tolerance))
    return different


def _compare_outputs(graph: RuntimeGraph, inputs: Given | None, options: argparse.Namespace) -> bool:
    expected = in_order(load_arrays(options.against[1]))
    return print_outputs(compare_outputs(graph, inputs or [], expected, options.tolerance))


def _compare_backends(
    native: RuntimeGraph, plain: RuntimeGraph, inputs: Given | None, options: argparse.Namespace
) -> bool:
    if inputs is None:
        inputs, kind = _made_inputs(plain, options)
        print(f"inputs  {kind}")
    return print_backends(compare_backends(native, plain, inputs, options.tolerance))


def _compare_precision(
    graph: RuntimeGraph, inputs: Given | None, options: argparse.Namespace, backend: Backend
) -> bool:
    """Compare the layers with float32, on the given inputs or on made-up ones; tells whether a ratio is too low."""
    param, binary = files_at(options.model)
    plain = RuntimeGraph(param, options.bin or binary, backend=backend, threads=options.threads)
    plain.build()
    if inputs is None:
        inputs, kind = _made_inputs(plain, options)
        if Precision.INT8 in graph.precisions.values():
            inputs = calibrated_inputs(inputs, read_sidecar(param, options.bin or binary).tensors)
            kind = "random, within the ranges of calibration"
        print(f"inputs  {kind}")
    return print_precision(compare_precision(graph, plain, inputs), options.ratio)


def _made_inputs(graph: RuntimeGraph, options: argparse.Namespace) -> tuple[dict[str, Array], str]:
    """Return the first inputs of those that programs are tried on that a graph runs on, and of what kind they are.

    Raises:
        InputError: it runs on none of them.
    """
    specs = choose_shapes(graph.inputs, options.shape, graph.param_path).specs or ()
    trials = trial_inputs({port.operand: spec for port, spec in zip(graph.inputs, specs, strict=True)})
    problem: KuiperError | None = None
    for trial in trials:
        try:
            graph.run(trial.arrays)
        except KuiperError as error:
            problem = error
        else:
            return trial.arrays, trial.kind
    raise InputError(
        f"--backend both: no made-up inputs run on the model: {problem}; give it some by --against"
    )
