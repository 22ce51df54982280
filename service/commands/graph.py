"""`kuiper graph MODEL`: a model's graph as a table, a tree by module or a drawing."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.tree import Tree

from service.commands.opening import Model, open_model, shape_text
from service.commands.output import Json, add_rows, check_output, console, print_json, table
from service.graph.drawing import draw_dot, draw_mermaid
from service.graph.svg import draw_svg
from service.graph.view import describe_graph

EXAMPLE = "kuiper graph models/digits"


Form = Literal["table", "tree", "dot", "mermaid", "svg"]
_DRAWINGS = {"dot": draw_dot, "mermaid": draw_mermaid, "svg": draw_svg}


def run(
    model: Model,
    *,
    form: Annotated[Form, typer.Option("--format", help="How the graph is shown.")] = "table",
    output: Annotated[Path | None, typer.Option(help="Output file.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Show a model's operators in execution order, as a tree of PyTorch's modules, or as a drawing.

    Drawings are Graphviz's dot, Mermaid, or SVG.
    """
    check_output(output)
    graph = open_model(model, backend="numpy")
    description = describe_graph(graph)
    if json:
        print_json(description)
    elif form in _DRAWINGS:
        drawing = _DRAWINGS[form](description, graph.param_path.name)
        if output is None:
            sys.stdout.write(drawing)
        else:
            output.write_text(drawing, encoding="utf-8")
    else:
        made = _table(description) if form == "table" else _tree(description, graph.param_path.name)
        if output is None:
            console().print(made)
        else:
            with output.open("w", encoding="utf-8") as file:
                console(file).print(made)


def _table(description: Mapping[str, Any]) -> Any:
    nodes = {node["name"]: node for node in description["nodes"]}
    shapes = {operand["name"]: shape_text(operand["shape"]) for operand in description["operands"]}
    made = table(
        "#",
        "operator",
        "type",
        "inputs",
        "outputs",
        "parameters",
        "multiply-adds",
        numbers=["#", "multiply-adds"],
    )
    rows = (
        (
            place,
            name,
            nodes[name]["type"],
            " ".join(nodes[name]["inputs"]),
            " ".join(f"{operand}: {shapes[operand]}" for operand in nodes[name]["outputs"]),
            _parameters(nodes[name]),
            f"{nodes[name]['multiply_adds']:,}" if nodes[name]["multiply_adds"] else "",
        )
        for place, name in enumerate(description["execution_order"])
    )
    return add_rows(made, rows)


def _tree(description: Mapping[str, Any], title: str) -> Tree:
    """Return the operators below the modules of their names: `layer1.0.conv1` is conv1 of 0 of layer1."""
    nodes = {node["name"]: node for node in description["nodes"]}
    root = Tree(title)
    branches: dict[tuple[str, ...], Tree] = {(): root}
    for name in description["execution_order"]:
        *modules, last = name.split(".") if not name.startswith("torch.") else [name]
        for depth in range(1, len(modules) + 1):
            path = tuple(modules[:depth])
            if path not in branches:
                branches[path] = branches[path[:-1]].add(path[-1])
        text = f"{last}  {nodes[name]['type']}  {_parameters(nodes[name])}".rstrip()
        branches[tuple(modules)].add(text)
    return root


def _parameters(node: Mapping[str, Any]) -> str:
    """Return an operator's parameters as the file writes them, and the shapes of its attributes."""
    values = (f"{name}={_value(value)}" for name, value in node["parameters"].items())
    shapes = (f"@{name}={shape_text(value['shape'])}" for name, value in node["attributes"].items())
    return " ".join([*values, *shapes])


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"({','.join(map(_value, value))})"
    return "None" if value is None else str(value)
