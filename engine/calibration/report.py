"""The report of `kuiper quantize`: what int8 does to each layer and to the outputs."""

from collections.abc import Collection, Sequence

from engine.calibration.agreement import Outcome
from engine.calibration.candidates import Candidate
from engine.calibration.sensitivity import LayerReport
from engine.quantization.figures import LayerFigures, OutputFigures, QuantizationFigures, RunFigures, finite

_HEAD = ("layer", "type", "in", "ratio", "cosine", "f32", "bf16", "int8", "alone: ratio", "class")


def figures_of(
    reports: Sequence[LayerReport], layers: Collection[Candidate], outcome: Outcome, runs: RunFigures
) -> QuantizationFigures:
    """Return the measurements in the form of the file beside the model.

    Args:
        reports: reports of all layers.
        layers: those in int8.
        outcome: error of the outputs.
        runs: times of runs in each precision.
    """
    return QuantizationFigures(
        _outputs(outcome),
        {
            report.candidate.operator.name: LayerFigures(
                type=report.candidate.operator.type,
                activation=report.candidate.activation.value,
                quantized=report.candidate in layers,
                ratio=finite(report.likeness.ratio),
                cosine=report.likeness.cosine,
                f32_us=report.f32_us,
                bf16_us=report.bf16_us,
                int8_us=report.int8_us,
                alone=_outputs(report.alone),
            )
            for report in reports
        },
        runs,
    )


def _outputs(outcome: Outcome) -> OutputFigures:
    return OutputFigures(outcome.agreement, finite(outcome.error), finite(outcome.ratio))


def print_layers(reports: Sequence[LayerReport], layers: Collection[Candidate]) -> None:
    """Print a line for each layer.

    Its result: ratio of signal to noise and cosine against float32. Its time in each precision. And where it alone
    is in int8: ratio of the outputs, and part of the examples with the same class.
    """
    rows = [_HEAD, *(_row(report, report.candidate in layers) for report in reports)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        cells = [
            cell.ljust(width) if column < 3 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


def _row(report: LayerReport, is_int8: bool) -> tuple[str, ...]:
    operator = report.candidate.operator
    activation = report.candidate.activation.value
    return (
        operator.name,
        operator.type,
        f"int8 {activation}" if is_int8 else "f32",
        f"{report.likeness.ratio:.1f} dB",
        f"{report.likeness.cosine:.5f}",
        _milliseconds(report.f32_us),
        _milliseconds(report.bf16_us),
        _milliseconds(report.int8_us),
        f"{report.alone.ratio:.1f} dB",
        f"{report.alone.agreement:.1%}",
    )


def _milliseconds(microseconds: float) -> str:
    return f"{microseconds / 1000:.3f} ms"


def print_outcome(
    reports: Sequence[LayerReport], layers: Collection[Candidate], outcome: Outcome, runs: RunFigures
) -> None:
    """Print which layers stay in float32 and what that costs, what a run takes, and how the outputs compare."""
    kept = [report for report in reports if report.candidate not in layers]
    for report in kept:
        cost = report.f32_us - report.int8_us
        print(f"kept in f32: {report.candidate.operator.name}, which costs {_milliseconds(cost)} a run")
    times = f"f32 {_milliseconds(runs.f32_us)}, bf16 {_milliseconds(runs.bf16_us)}, int8 {_milliseconds(runs.int8_us)}"
    print(f"a run: {times}; {runs.processor}")
    print(
        f"outputs: {outcome.agreement:.2%} of the rows have the class of float32, ratio {outcome.ratio:.1f} dB, "
        f"error {outcome.error:.4f}"
    )
