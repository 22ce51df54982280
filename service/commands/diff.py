"""`kuiper diff A B`: what differs between two models, operator by operator."""

from dataclasses import asdict
from typing import Annotated

import typer

from service.commands.failure import BAD
from service.commands.model_difference import PairDifference, compare_models
from service.commands.opening import InputFile, Model, Shapes, open_model, run_inputs
from service.commands.output import Json, console, print_json, table
from service.telemetry.status_line import status_line

EXAMPLE = "kuiper diff models/digits models/digits models/digits/samples/7.png"


def run(
    model: Model,
    other: Annotated[str, typer.Argument(help="the other model")],
    file: InputFile = None,
    *,
    shape: Shapes = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0, help="Largest difference that is ignored, relative to the largest element of a tensor."
        ),
    ] = 1e-3,
    everything: Annotated[
        bool, typer.Option("--all", help="Also list operators that do not differ.")
    ] = False,
    json: Json = False,
) -> None:
    """Compare two models or versions of one, operator by operator: graph, weights, and results on the same input.

    Operators are paired by name, the others by type. The exit code is 1 if anything differs by more than the tolerance.
    """
    with status_line("reading the models") as step:
        graphs = open_model(model), open_model(other)
        inputs = run_inputs(graphs[0], file, shape)
        step("comparing graphs, weights and results")
        pairs = compare_models(*graphs, inputs.arrays)
    differing = [pair for pair in pairs if pair.differs(tolerance)]
    if json:
        print_json([asdict(pair) | {"differs": pair.differs(tolerance)} for pair in pairs])
    else:
        _print(pairs if everything else differing)
        _summarize(pairs, differing, tolerance, inputs.source)
    if differing:
        raise typer.Exit(BAD)


def _print(pairs: list[PairDifference]) -> None:
    if not pairs:
        return
    # numbers are never folded: what is said of results in words would leave no room for the other columns
    made = table("operator", "type", "differences", "weights", "results", numbers=["weights", "results"])
    for pair in pairs:
        name = pair.name or f"+ {pair.other}"
        renamed = f" = {pair.other}" if pair.name and pair.other and pair.other != pair.name else ""
        made.add_row(
            name + renamed,
            pair.type,
            "; ".join((*pair.changes, *filter(None, [pair.problem]))),
            _number(pair.weights),
            "" if pair.problem else _number(pair.results),
        )
    console().print(made)


def _summarize(
    pairs: list[PairDifference], differing: list[PairDifference], tolerance: float, source: str
) -> None:
    out = console()
    if not differing:
        out.print(f"{len(pairs)} operators agree within {tolerance:g} on {source}")
        return
    out.print(f"{len(differing)} of {len(pairs)} operators differ by more than {tolerance:g} on {source}")
    for what, found in (
        ("graph", [pair for pair in differing if pair.changes]),
        ("weights", [pair for pair in differing if (pair.weights or 0) > tolerance]),
        ("results", [pair for pair in differing if pair.problem or (pair.results or 0) > tolerance]),
    ):
        if found:
            first = found[0]
            out.print(f"{what}: {len(found)}, the first is {first.type} {first.name or first.other}")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2e}" if value else "0"
