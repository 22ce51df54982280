"""`kuiper quantize MODEL --data EXAMPLES`; `python -m engine.calibration` is the same, for `.npz` files.

Its exit code is 0 where the scales were written, 1 where they could not be.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine.backend import choose_backend, describe_processor
from engine.calibration.agreement import Outcome
from engine.calibration.calibrator import DEFAULT_PERCENTILE, METHODS, Calibrator, open_graph
from engine.calibration.candidates import Candidate
from engine.calibration.examples import ArrayExamples, Examples, chosen
from engine.calibration.progress import ProgressLine
from engine.calibration.report import figures_of, print_layers, print_outcome
from engine.calibration.sensitivity import LayerReport, Sensitivity, choose_layers
from engine.command_parser import CommandParser
from engine.errors import InputError, KuiperError
from engine.graph import RuntimeGraph
from engine.model_folder import files_at
from engine.ports import Port
from engine.precision import Precision
from engine.quantization.figures import figures_document
from engine.quantization.scheme import Quantization
from engine.quantization.sidecar import model_digests, write_sidecar

GOOD, BAD = 0, 1
"""Exit codes."""

OpenPictures = Callable[[Path, Path, Sequence[Port]], Examples]
"""Opens a folder of pictures for the model in another folder, whose inputs are given."""


def main(arguments: Sequence[str] | None = None, open_pictures: OpenPictures | None = None) -> int:
    """Quantize a model; returns the exit code.

    Args:
        arguments: of the command line.
        open_pictures: opens a folder of pictures; None where only arrays can be read.

    Raises:
        SystemExit: the arguments are wrong, with exit code 2, or help was asked for.
    """
    options = make_parser().parse_args(arguments)
    logging.getLogger("engine").addHandler(logging.NullHandler())
    try:
        return _quantize(options, open_pictures)
    except (KuiperError, OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = CommandParser(
        prog="kuiper quantize",
        description="Determine from examples how a model computes in int8, write that beside the model, and tell what "
        "each layer loses and gains.",
    )
    parser.add_argument(
        "model",
        type=Path,
        help="a .param file, or the folder of a model; of its versions, the highest is quantized",
    )
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        metavar="EXAMPLES",
        help="an .npz with in_0, in_1 …, each with a leading axis over examples; or a folder of pictures, prepared as "
        "model.toml says",
    )
    parser.add_argument(
        "--method",
        choices=METHODS,
        default=METHODS[0],
        help="how ranges are chosen: mse for the least squared error, minmax for all values, percentile for most of "
        "them (default mse)",
    )
    parser.add_argument(
        "--percentile",
        type=_percentile,
        default=DEFAULT_PERCENTILE,
        metavar="PERCENT",
        help=f"part of the values that --method percentile keeps (default {DEFAULT_PERCENTILE})",
    )
    parser.add_argument(
        "--agreement",
        type=_part,
        metavar="PART",
        help="keep the most harmful layers in float32 until this part of the examples has the same class as in "
        "float32, as 0.99",
    )
    parser.add_argument(
        "--tolerance",
        type=_part,
        metavar="ERROR",
        help="keep the most harmful layers in float32 until the outputs differ by at most this from those of float32: "
        "norm of the difference over norm of the output",
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="LAYER",
        help="an operator that stays in float32, by name; repeat it for each",
    )
    parser.add_argument(
        "--measured",
        type=_count,
        default=32,
        metavar="N",
        help="examples that layers are measured on, spread evenly (default 32)",
    )
    parser.add_argument(
        "--threads", type=_count, default=1, metavar="N", help="threads that a run uses (default 1)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document, for programs")
    return parser


def _percentile(text: str) -> float:
    return _number(text, 50, 100)


def _part(text: str) -> float:
    return _number(text, 0, 1)


def _number(text: str, least: float, greatest: float) -> float:
    try:
        number = float(text)
    except ValueError:
        number = greatest + 1
    if not least <= number <= greatest:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {least:g} to {greatest:g}")
    return number


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _quantize(options: argparse.Namespace, open_pictures: OpenPictures | None) -> int:
    param, binary = files_at(options.model)
    digests = model_digests(param, binary)
    backend = choose_backend()
    graph = open_graph(param, binary, None, options.threads, backend.value)
    examples = _examples(options.data, graph, open_pictures)
    progress = ProgressLine(sys.stderr)
    calibrator = Calibrator(graph, examples, options.keep, progress.show)
    calibrator.calibrate(options.method, options.percentile)
    sensitivity = Sensitivity(
        calibrator,
        lambda quantization: open_graph(
            param, binary, quantization, options.threads, backend.value, Precision.BF16
        ),
        chosen(len(examples), options.measured),
        progress.show,
    )
    reports = sensitivity.reports()
    layers, outcome = _chosen(options, sensitivity, reports)
    runs = sensitivity.run_figures(layers, describe_processor(backend, options.threads))
    figures = figures_of(reports, layers, outcome, runs)
    quantization = replace(_with_error(calibrator.quantization(layers), outcome), figures=figures)
    if model_digests(param, binary) != digests:
        raise InputError(
            f"{param}: it or its .bin was changed meanwhile; nothing is written, quantize it once more"
        )
    path = write_sidecar(quantization, param, binary)
    progress.clear()
    zeros = [name for name, scale in quantization.tensors.items() if scale.is_of_zeros]
    not_finite = calibrator.not_finite
    if options.json:
        found = {"written": str(path), "zeros": zeros, "not_finite": not_finite}
        print(json.dumps(found | figures_document(figures), indent=2))
        return GOOD
    print_layers(reports, layers)
    print_outcome(reports, layers, outcome, runs)
    print(f"written {path}")
    for warning in _warnings(zeros, not_finite, len(examples)):
        print(f"warning: {warning}", file=sys.stderr)
    return GOOD


def _warnings(zeros: Sequence[str], not_finite: Mapping[str, int], examples: int) -> Iterator[str]:
    """Yield what is doubtful of the examples, a sentence for each operand."""
    for name in zeros:
        yield f"operand {name!r} is 0 in all examples, and would count as 0 in every run"
    for name, count in not_finite.items():
        held = f"operand {name!r} holds infinities or NaN in {count} of {examples} examples"
        yield f"{held}; no range reaches them, and int8 takes NaN for the least number"


def _with_error(quantization: Quantization, outcome: Outcome) -> Quantization:
    """Return the quantization with what was measured of its outputs, by which `auto` chooses."""
    if quantization.calibration is None:
        return quantization
    return replace(quantization, calibration=replace(quantization.calibration, error=outcome.error))


def _examples(data: Path, graph: RuntimeGraph, open_pictures: OpenPictures | None) -> Examples:
    if not data.is_dir():
        return ArrayExamples(data, graph.inputs)
    if open_pictures is None:
        raise InputError(f"{data}: is a folder; expected an .npz, as pictures need `kuiper quantize`")
    return open_pictures(data, graph.param_path.parent, graph.inputs)


def _chosen(
    options: argparse.Namespace, sensitivity: Sensitivity, reports: Sequence[LayerReport]
) -> tuple[list[Candidate], Outcome]:
    """Return the layers that are computed in int8, and how the outputs compare then."""
    agreement = 0.0 if options.agreement is None else options.agreement
    tolerance = float("inf") if options.tolerance is None else options.tolerance

    def is_enough(outcome: Outcome) -> bool:
        return outcome.agreement >= agreement and outcome.error <= tolerance

    return choose_layers(sensitivity, reports, is_enough)
