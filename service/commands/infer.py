"""`kuiper infer MODEL FILE…`: runs a model on files, in this process and without a server."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from service.commands.failure import BAD
from service.commands.inference import Inference, Outcome, expand_files
from service.commands.inference_output import write_csv, write_json, write_json_lines, write_table
from service.commands.opening import Model
from service.commands.output import check_output
from service.telemetry.status_line import show_status

EXAMPLE = "kuiper infer models/digits models/digits/samples"


Form = Literal["table", "json", "jsonl", "csv"]
_WRITERS = {"table": write_table, "json": write_json, "jsonl": write_json_lines, "csv": write_csv}


def run(
    model: Model,
    files: Annotated[
        list[str], typer.Argument(help="images, .npy and .npz files, folders of these, and globs")
    ],
    *,
    form: Annotated[Form, typer.Option("--format", help="How results are printed.")] = "table",
    output: Annotated[Path | None, typer.Option(help="Output file.", show_default=False)] = None,
    drawn: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for images with the predictions drawn on them.", show_default=False
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(min=1, help="Predictions for each; default: that of model.toml.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Run a model on images and arrays, and print its predictions.

    Predictions are those of `kuiper serve`, computed in this process. Folders are searched with their subfolders. An
    unreadable file does not stop the others.
    """
    check_output(output)
    if drawn is not None:
        drawn.mkdir(parents=True, exist_ok=True)
    outcomes = asyncio.run(_infer(Inference(model, top_k, drawn), expand_files(files)))
    chosen = "json" if json else form
    if output is None:
        _WRITERS[chosen](outcomes, None)
    else:
        with output.open("w", encoding="utf-8", newline="") as target:
            _WRITERS[chosen](outcomes, target)
    if any(outcome.error is not None for outcome in outcomes):
        raise typer.Exit(BAD)


async def _infer(inference: Inference, files: Sequence[Path]) -> list[Outcome]:
    outcomes = []
    async for outcome in inference.outcomes(files):
        outcomes.append(outcome)
        show_status(f"running, {len(outcomes)} of {len(files)} files done")
    return outcomes
