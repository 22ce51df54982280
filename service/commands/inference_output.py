"""What a model gave for files, as a table, JSON, JSON lines or CSV."""

import csv
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import orjson

from service.commands.inference import Outcome
from service.commands.opening import shape_text
from service.commands.output import console, path_text, print_json, table

_LISTED = 5
"""Predictions of an item that a table lists."""


def write_table(outcomes: Sequence[Outcome], target: IO[str] | None) -> None:
    """Write a line for each file: its best predictions, else the shapes of the outputs."""
    made = table("file", "item", "predictions", "ms", numbers=["item", "ms"])
    for outcome in outcomes:
        response = outcome.response
        if response is None:
            made.add_row(path_text(outcome.file), "", f"error: {outcome.error}", "")
            continue
        time = f"{response.timing['total_ms']:.1f}"
        for place, text in enumerate(_items(outcome)):
            made.add_row(
                *(
                    (path_text(outcome.file), str(place), text, time)
                    if not place
                    else ("", str(place), text, "")
                )
            )
        if outcome.error is not None:
            made.add_row("", "", f"not drawn: {outcome.error}", "")
    out = console(target)
    out.print(made)
    done = sum(outcome.response is not None for outcome in outcomes)
    if done < len(outcomes):
        out.print(f"{done} of {len(outcomes)} files have a response")


def write_json(outcomes: Sequence[Outcome], target: IO[str] | None) -> None:
    """Write a list with an object for each file."""
    described = [_describe(outcome) for outcome in outcomes]
    if target is None:
        print_json(described)
    else:
        target.write(orjson.dumps(described, option=orjson.OPT_INDENT_2).decode() + "\n")


def write_json_lines(outcomes: Sequence[Outcome], target: IO[str] | None) -> None:
    """Write a line of JSON for each file."""
    for outcome in outcomes:
        (sys.stdout if target is None else target).write(orjson.dumps(_describe(outcome)).decode() + "\n")


def write_csv(outcomes: Sequence[Outcome], target: IO[str] | None) -> None:
    """Write a row for each prediction; fields that hold several values are JSON."""
    rows = [row for outcome in outcomes for row in _rows(outcome)]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(sys.stdout if target is None else target, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _items(outcome: Outcome) -> Iterator[str]:
    response = outcome.response
    if response is None:
        return
    if not response.predictions:
        yield ", ".join(
            f"{name}: {shape_text(array.shape)} {array.dtype}" for name, array in response.outputs.items()
        )
    for item in response.predictions:
        more = f" and {len(item) - _LISTED} more" if len(item) > _LISTED else ""
        yield (", ".join(map(_summary, item[:_LISTED])) or "nothing") + more


def _summary(prediction: Mapping[str, Any]) -> str:
    """Return a prediction in a few words: its label and its numbers, of lists none but a box."""
    words = [str(prediction["label"])] if "label" in prediction else []
    for name, value in prediction.items():
        if isinstance(value, float):
            words.append(f"{value:.3f}")
        elif name == "box":
            corners = value.values() if isinstance(value, Mapping) else value
            words.append(f"({', '.join(f'{corner:.0f}' for corner in corners)})")
        elif name in ("text", "area"):
            words.append(str(value))
    return " ".join(words) or orjson.dumps(prediction).decode()[:60]


def _describe(outcome: Outcome) -> dict[str, Any]:
    described: dict[str, Any] = {"file": path_text(outcome.file)}
    if outcome.response is not None:
        described |= outcome.response.fields
    if outcome.drawn is not None:
        described["drawn"] = path_text(outcome.drawn)
    return described if outcome.error is None else described | {"error": outcome.error}


def _rows(outcome: Outcome) -> Iterator[dict[str, Any]]:
    if outcome.response is None or outcome.error is not None:
        yield {"file": path_text(outcome.file), "error": outcome.error}
    for item, predictions in enumerate(outcome.response.predictions if outcome.response is not None else ()):
        for rank, prediction in enumerate(predictions):
            plain = {
                name: orjson.dumps(value).decode() if isinstance(value, list | dict) else value
                for name, value in prediction.items()
            }
            yield {"file": path_text(outcome.file), "item": item, "rank": rank, **plain}
