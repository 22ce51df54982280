"""`kuiper explain MODEL FILE`: why a model predicts what it predicts, in this process and without a server."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from service.client import ClientError, Explanation
from service.commands.failure import CommandError
from service.commands.inference import Inference, read_input
from service.commands.opening import Model, model_files
from service.commands.output import Json, add_rows, check_output, console, print_json, table
from service.inspection.explanation_schemas import Method
from service.telemetry.status_line import show_status

EXAMPLE = "kuiper explain models/digits models/digits/samples/3.png"
_MAX_WORDS = 10


def run(
    model: Model,
    file: Annotated[Path, typer.Argument(help="a picture, an .npy with the tensor of one, or a .txt")],
    *,
    target: Annotated[
        str | None,
        typer.Option(help="Label or number of a class; default: the most probable.", show_default=False),
    ] = None,
    place: Annotated[
        int,
        typer.Option(min=0, help="Place of the prediction among those of the target; 0: the most probable."),
    ] = 0,
    method: Annotated[
        Method | None,
        typer.Option(help="Default: occlusion for a picture, words for a text.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="PNG to write the picture with its heatmap to.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """Show which parts of a picture, or which words of a text, a prediction depends on.

    The model runs on changed inputs: without one part of the picture after the other, or without one word.
    """
    check_output(output)
    inference = Inference(model)
    if inference.name is not None:  # before seconds of compiling
        model_files(model)
    found = asyncio.run(_explain(inference, file, target=target, place=place, method=method))
    if output is not None:
        if found.overlay is None:
            raise CommandError(f"{output}: cannot be written: {file} is not a picture")
        output.write_bytes(found.overlay)
    if json:
        document = asdict(found)
        del document["overlay"]
        print_json(document)
    else:
        _print(found, output)


async def _explain(inference: Inference, file: Path, **question: Any) -> Explanation:
    async with inference.client() as client:
        try:
            inputs = file.read_text("utf-8") if file.suffix.lower() == ".txt" else read_input(file)
            name = inference.name or (await client.models())[0]["name"]
            show_status(f"running on changed inputs, to explain {file.name}")
            return await client.explain(inputs, model=name, **question)
        except (ClientError, ValueError) as error:
            raise CommandError(f"{file}: {error}") from error


def _print(found: Explanation, output: Path | None) -> None:
    target = found.target
    lines: dict[str, object] = {
        "prediction": f"{target['label']} {target['probability']:.3f}",
        "method": found.method,
        "runs": found.runs,
    }
    if found.heatmap is not None and found.region is not None:
        rows, columns = found.heatmap.shape
        row, column = divmod(int(found.heatmap.argmax()), columns)
        left, top, right, bottom = found.region
        x, y = left + (column + 0.5) * (right - left) / columns, top + (row + 0.5) * (bottom - top) / rows
        lines["most important"] = f"about x {x:.0f}, y {y:.0f}; importance {found.heatmap.max():.3f}"
    if output is not None:
        lines["written"] = output
    out = console()
    out.print(add_rows(Table.grid(padding=(0, 2)), lines.items()))
    if found.words:
        words = sorted(found.words, key=lambda word: -abs(word["importance"]))[:_MAX_WORDS]
        importances = ((word["text"], f"{word['importance']:+.3f}") for word in words)
        out.print(add_rows(table("word", "importance", numbers=["importance"]), importances))
