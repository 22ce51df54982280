"""`kuiper check MODEL`: whether a model runs, which inputs it takes, and where it differs from a reference."""

import io
import json as json_module
import logging
import math
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Literal

import typer

from engine import Precision
from engine.check import CheckOptions, Report, check_model, describe_report
from service.commands.failure import BAD, CommandError, CommandUsageError
from service.commands.opening import Model, Shapes, Threads, model_files, parse_shape
from service.commands.output import Json
from service.telemetry.status_line import status_line

EXAMPLE = "kuiper check models/digits"


def run(
    model: Model,
    bin: Annotated[
        Path | None, typer.Argument(help="the .bin file; by default the one beside the .param file")
    ] = None,
    *,
    against: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="INPUTS OUTPUTS",
            help="Files of inputs (.npz) and of the outputs that are expected for them.",
            show_default=False,
        ),
    ] = None,
    layers: Annotated[
        Path | None,
        typer.Option(
            metavar="REFERENCE",
            help="File of intermediate results (.npz), each named after an operand or an operator, NAME.0 for the "
            "first of several outputs; the first operator that differs from them is reported.",
            show_default=False,
        ),
    ] = None,
    backend: Annotated[
        Literal["native", "numpy", "both"] | None,
        typer.Option(
            help="Compiled kernels (native), numpy, or a comparison of both, operator by operator; by default as a "
            "server chooses.",
            show_default=False,
        ),
    ] = None,
    precision: Annotated[
        Precision, typer.Option(help="Precision of the operands of products in compiled kernels.")
    ] = Precision.F32,
    threads: Threads = 1,
    shape: Shapes = None,
    tolerance: Annotated[
        float,
        typer.Option(
            help="Largest difference that is ignored, relative to the value and to the largest of its tensor."
        ),
    ] = 1e-3,
    ratio: Annotated[
        float | None,
        typer.Option(
            metavar="DECIBELS",
            help="With --precision: lowest signal-to-noise ratio against f32; the first layer below it is reported.",
            show_default=False,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Report whether a model runs, which inputs it takes, and where its results differ from a reference.

    The exit code is 0 if the model runs and agrees, 1 if it does not, 2 if that cannot be determined: the arguments
    are wrong, or the shapes of the inputs are unknown.
    """
    if not 0 <= tolerance < math.inf:
        raise CommandUsageError(f"--tolerance {tolerance}: expected a number from 0 on, as 1e-3")
    if ratio is not None and not math.isfinite(ratio):
        raise CommandUsageError(f"--ratio {ratio}: expected decibels, as 30")
    shapes = [parse_shape(text) for text in shape or ()]
    logging.getLogger("engine").addHandler(logging.NullHandler())  # the report has the warnings
    param, beside = model_files(model)
    options = CheckOptions(
        param,
        bin or beside,
        against=against,
        layers=layers,
        backend=backend,
        precision=precision,
        threads=threads,
        shapes=shapes,
        tolerance=tolerance,
        ratio=ratio,
    )
    try:
        code = _check(options, as_json=json)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if code:
        raise typer.Exit(code)


def _check(options: CheckOptions, *, as_json: bool) -> int:
    """Check a model, and print its report and what comparisons found: as lines, or with the exit code as JSON."""
    reports: list[Report] = []
    comparison = io.StringIO()
    code = BAD
    try:
        with status_line("reading the model", shows_log=False) as step, redirect_stdout(comparison):
            code = check_model(options, reports.append, step)
    finally:
        found = comparison.getvalue().splitlines()
        if as_json:
            described = describe_report(reports[0]) if reports else None
            document = {"exit_code": code, "report": described, "comparison": found}
            print(json_module.dumps(document, indent=2))
        else:
            for line in (*(line for report in reports for line in report.lines()), *found):
                print(line)
    return code
