"""Drawings of a described graph: DOT for Graphviz, Mermaid for web pages."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

Description: TypeAlias = Mapping[str, Any]
"""What `service.graph.view.describe_graph` returns."""

_MERMAID_ENTITIES = {ord(c): f"#{ord(c)};" for c in "#\"'<>&`|[]{}()\\"}


def draw_dot(description: Description, title: str) -> str:
    """Return a graph in the DOT language."""
    lines = [f"digraph {_dot(title)} {{", "  rankdir=TB;", '  node [shape=box, fontname="sans-serif"];']
    lines += [f"  {_dot(node['name'])} [label={_dot(node_label(node))}];" for node in description["nodes"]]
    lines += [
        f"  {_dot(producer)} -> {_dot(consumer)} [label={_dot(operand_label(operand))}];"
        for producer, consumer, operand in edges_of(description)
    ]
    return "\n".join([*lines, "}", ""])


def draw_mermaid(description: Description, title: str) -> str:
    """Return a graph as a Mermaid flowchart."""
    ids = {node["name"]: f"n{index}" for index, node in enumerate(description["nodes"])}
    lines = [f"%% {title}", "flowchart TD"]
    lines += [f'  {ids[node["name"]]}["{_mermaid(node_label(node))}"]' for node in description["nodes"]]
    lines += [
        f'  {ids[producer]} -->|"{_mermaid(operand_label(operand))}"| {ids[consumer]}'
        for producer, consumer, operand in edges_of(description)
    ]
    return "\n".join([*lines, ""])


def edges_of(description: Description) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield for each operand and consumer the names of producer and consumer, and the operand."""
    for operand in description["operands"]:
        for consumer in operand["consumers"]:
            yield operand["producer"], consumer, operand


def node_label(node: Mapping[str, Any]) -> str:
    """Return the content of an operator's box: its type, its name and, if it has one, its expression, in lines."""
    expression = node["parameters"].get("expr")
    lines = [node["type"], node["name"]]
    return "\n".join([*lines, str(expression)] if expression is not None else lines)


def operand_label(operand: Mapping[str, Any]) -> str:
    """Return what stands at an operand's line: its name, its shape and its dtype, as far as they are known."""
    if operand["shape"] is None:
        return str(operand["name"])
    dims = ",".join("?" if dim is None else str(dim) for dim in operand["shape"])
    return f"{operand['name']} ({dims}){operand['dtype']}"


def _dot(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _mermaid(text: str) -> str:
    return text.translate(_MERMAID_ENTITIES).replace("\n", "<br/>")
