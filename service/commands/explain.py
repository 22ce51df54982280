"""`kuiper explain MODEL FILE`: why a model predicts what it predicts, in this process and without a server."""

import asyncio
from dataclasses import asdict
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from service.client import ClientError, Explanation
from service.commands.failure import CommandError
from service.commands.inference import Inference, read_input
from service.commands.opening import Model, model_files
from service.commands.output import Json, check_output, console, print_json
from service.telemetry.status_line import show_status

EXAMPLE = "kuiper explain models/digits models/digits/samples/3.png"
_MAX_WORDS = 10


class Method(Enum):
    """How a prediction is explained."""

    OCCLUSION = "occlusion"
    SCORE_CAM = "score-cam"
    WORDS = "words"


def run(
    model: Model,
    file: Annotated[Path, typer.Argument(help="a picture, an .npy with the tensor of one, or a .txt")],
    *,
    target: Annotated[
        str | None,
        typer.Option(
            help="Label or number of the class; default: the most probable one.", show_default=False
        ),
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
        Path | None,
        typer.Option(help="PNG to write the picture with its heatmap to.", show_default=False),
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
    found = asyncio.run(_explain(inference, file, target, place, method))
    if output is not None:
        if found.overlay is None:
            raise CommandError(f"{output}: cannot be written: {file} is not a picture")
        output.write_bytes(found.overlay)
    if json:
        print_json(_document(found))
    else:
        _print(found, output)


async def _explain(
    inference: Inference, file: Path, target: str | None, place: int, method: Method | None
) -> Explanation:
    async with inference.client() as client:
        try:
            inputs = file.read_text("utf-8") if file.suffix.lower() == ".txt" else read_input(file)
            name = inference.name or (await client.models())[0]["name"]
            show_status(f"running on changed inputs, to explain {file.name}")
            return await client.explain(
                inputs, target=target, place=place, method=method.value if method else None, model=name
            )
        except (ClientError, ValueError) as error:
            raise CommandError(f"{file}: {error}") from error


def _document(found: Explanation) -> dict[str, object]:
    heatmap = None if found.heatmap is None else found.heatmap.tolist()
    document = asdict(found) | {"heatmap": heatmap}
    del document["overlay"]
    return document


def _print(found: Explanation, output: Path | None) -> None:
    target = found.target
    lines = [("prediction", f"{target['label']} {target['probability']:.3f}"), ("method", found.method)]
    lines.append(("runs", str(found.runs)))
    if found.heatmap is not None and found.region is not None:
        lines.append(("most important", _place(found)))
    if output is not None:
        lines.append(("written", str(output)))
    table = Table.grid(padding=(0, 2))
    for line in lines:
        table.add_row(*line)
    out = console()
    out.print(table)
    if found.words:
        words = Table("word", "importance", box=None)
        for word in sorted(found.words, key=lambda word: -abs(word["importance"]))[:_MAX_WORDS]:
            words.add_row(word["text"], f"{word['importance']:+.3f}")
        out.print(words)


def _place(found: Explanation) -> str:
    """Return the part of the picture without which the score falls most, as text."""
    heatmap, region = found.heatmap, found.region
    if heatmap is None or region is None:
        return ""
    rows, columns = heatmap.shape
    row, column = divmod(int(heatmap.argmax()), columns)
    width, height = (region.x2 - region.x1) / columns, (region.y2 - region.y1) / rows
    x, y = region.x1 + (column + 0.5) * width, region.y1 + (row + 0.5) * height
    return f"about x {x:.0f}, y {y:.0f}; importance {heatmap.max():.3f}"
