"""int8 calibration of a model: scales in a file beside it, and a report."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.backend import choose_backend, describe_processor
from engine.calibration.agreement import Outcome
from engine.calibration.calibrator import DEFAULT_PERCENTILE, METHODS, Calibrator, Step, open_graph
from engine.calibration.candidates import Candidate
from engine.calibration.examples import ArrayExamples, Examples, chosen
from engine.calibration.report import figures_of, print_layers, print_outcome
from engine.calibration.sensitivity import LayerReport, Sensitivity, choose_layers
from engine.errors import InputError
from engine.graph import RuntimeGraph
from engine.model.ports import Port
from engine.precision import Precision
from engine.quantization.figures import figures_document
from engine.quantization.scheme import Quantization
from engine.quantization.sidecar import model_digests, write_sidecar

OpenPictures = Callable[[Path, Path, Sequence[Port]], Examples]
"""Opens a folder of images for a model's folder and inputs."""


@dataclass(frozen=True, slots=True)
class QuantizeOptions:
    """Options of calibration.

    Attributes:
        param: the `.param` file.
        bin: the `.bin` file.
        data: examples: an `.npz`, or a folder of pictures.
        method: how ranges are chosen, one of `METHODS`.
        percentile: the part of the values, in percent, that the method "percentile" keeps.
        agreement: the part of the examples whose class has to be that of float32; None for any.
        tolerance: the largest relative difference of the outputs from those of float32; None for any.
        keep: operators that stay in float32.
        measured: examples that layers are measured on.
        threads: threads of a run.
        json: whether one JSON document is printed in place of tables.
    """

    param: Path
    bin: Path
    data: Path
    method: str = METHODS[0]
    percentile: float = DEFAULT_PERCENTILE
    agreement: float | None = None
    tolerance: float | None = None
    keep: Sequence[str] = ()
    measured: int = 32
    threads: int = 1
    json: bool = False


def quantize_model(options: QuantizeOptions, step: Step, open_pictures: OpenPictures | None = None) -> None:
    """Quantize a model: write the scales beside it, and print the error and the speedup of each layer.

    Args:
        options: what is quantized, and how.
        step: called before each step, and with "" before the report is printed.
        open_pictures: opens a folder of pictures; None where only arrays can be read.

    Raises:
        KuiperError: the model or the examples cannot be read, or do not fit.
        OSError, ValueError: as above.
    """
    param, binary = options.param, options.bin
    digests = model_digests(param, binary)
    backend = choose_backend()
    graph = open_graph(param, binary, None, options.threads, backend.value)
    examples = _examples(options.data, graph, open_pictures)
    calibrator = Calibrator(graph, examples, options.keep, step)
    calibrator.calibrate(options.method, options.percentile)
    sensitivity = Sensitivity(
        calibrator,
        lambda quantization: open_graph(
            param, binary, quantization, options.threads, backend.value, Precision.BF16
        ),
        chosen(len(examples), options.measured),
        step,
    )
    reports = sensitivity.reports()
    step("choosing layers")
    layers, outcome = _chosen(options, sensitivity, reports)
    step("timing runs in each precision")
    runs = sensitivity.run_figures(layers, describe_processor(backend, options.threads))
    figures = figures_of(reports, layers, outcome, runs)
    quantization = replace(_with_error(calibrator.quantization(layers), outcome), figures=figures)
    if model_digests(param, binary) != digests:
        raise InputError(
            f"{param}: it or its .bin was changed meanwhile; nothing is written, quantize it once more"
        )
    path = write_sidecar(quantization, param, binary)
    step("")
    zeros = [name for name, scale in quantization.tensors.items() if scale.is_of_zeros]
    not_finite = calibrator.not_finite
    if options.json:
        found = {"written": str(path), "zeros": zeros, "not_finite": not_finite}
        print(json.dumps(found | figures_document(figures), indent=2))
        return
    print_layers(reports, layers)
    print_outcome(reports, layers, outcome, runs)
    print(f"written {path}")
    for warning in _warnings(zeros, not_finite, len(examples)):
        print(f"warning: {warning}", file=sys.stderr)


def _warnings(zeros: Sequence[str], not_finite: Mapping[str, int], examples: int) -> Iterator[str]:
    """Yield warnings about the examples, a sentence for each operand."""
    for name in zeros:
        yield f"operand {name!r} is 0 in all examples, and would count as 0 in every run"
    for name, count in not_finite.items():
        held = f"operand {name!r} holds infinities or NaN in {count} of {examples} examples"
        yield f"{held}; no range reaches them, and int8 takes NaN for the least number"


def _with_error(quantization: Quantization, outcome: Outcome) -> Quantization:
    """Return the quantization with the measured error of its outputs, by which `auto` chooses."""
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
    options: QuantizeOptions, sensitivity: Sensitivity, reports: Sequence[LayerReport]
) -> tuple[list[Candidate], Outcome]:
    """Return the layers in int8, and the error of the outputs."""
    agreement = 0.0 if options.agreement is None else options.agreement
    tolerance = float("inf") if options.tolerance is None else options.tolerance

    def is_enough(outcome: Outcome) -> bool:
        return outcome.agreement >= agreement and outcome.error <= tolerance

    return choose_layers(sensitivity, reports, is_enough)
