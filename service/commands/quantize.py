"""`kuiper quantize MODEL --data EXAMPLES`: calibrates a model for int8."""

import logging
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from engine.calibration import DEFAULT_PERCENTILE, METHODS, QuantizeOptions, quantize_model
from service.commands.failure import CommandError
from service.commands.opening import Model, Threads, model_files
from service.commands.output import Json
from service.pictures import PictureExamples
from service.telemetry.status_line import status_line

EXAMPLE = "kuiper quantize models/digits --data digits.npz"
EXAMPLE_MARK = "none"
"""The guide on quantization runs such an example, which needs a file of examples."""

Method = Enum("Method", {name.upper(): name for name in METHODS})  # type: ignore[misc]  # the names are the engine's
_FIRST = Method(METHODS[0])


def run(
    model: Model,
    *,
    data: Annotated[
        Path,
        typer.Option(
            metavar="EXAMPLES",
            help="An .npz with in_0, in_1 …, each with a leading axis over examples, or an .npy for one input; or a "
            "folder of pictures, prepared as model.toml says.",
        ),
    ],
    method: Annotated[
        Method,
        typer.Option(
            help="Choice of ranges: mse for the least squared error, minmax for all values, percentile for most."
        ),
    ] = _FIRST,
    percentile: Annotated[
        float,
        typer.Option(min=50, max=100, metavar="PERCENT", help="Part of the values that percentile keeps."),
    ] = DEFAULT_PERCENTILE,
    agreement: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="PART",
            help="Least part of the examples whose class is that of float32, as 0.99; the most harmful layers stay in "
            "float32 until it is reached.",
            show_default=False,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="ERROR",
            help="Largest difference of the outputs from float32 (norm of the difference over norm of the output); the "
            "most harmful layers stay in float32 until it is reached.",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LAYER",
            help="Operator that stays in float32, by name; repeat it for each.",
            show_default=False,
        ),
    ] = None,
    measured: Annotated[
        int, typer.Option(min=1, metavar="N", help="Examples that layers are measured on, spread evenly.")
    ] = 32,
    threads: Threads = 1,
    json: Json = False,
) -> None:
    """Calibrate a model for int8 from example inputs, write the scales beside it, and report the error of each layer.

    The exit code is 0 where the scales were written, 1 where they could not be.
    """
    logging.getLogger("engine").addHandler(logging.NullHandler())  # the report has the warnings
    param, binary = model_files(model)
    options = QuantizeOptions(
        param,
        binary,
        data,
        method=str(method.value),
        percentile=percentile,
        agreement=agreement,
        tolerance=tolerance,
        keep=keep or [],
        measured=measured,
        threads=threads,
        json=json,
    )
    with status_line("reading the model", shows_log=False) as step:
        try:
            quantize_model(options, step, PictureExamples)
        except ValueError as error:
            raise CommandError(str(error)) from error
