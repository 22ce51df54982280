"""Schemas of drawings, for the OpenAPI description."""

from typing import Literal

from pydantic import BaseModel, Field


class LayoutNode(BaseModel):
    """An operator, or a module whose operators are drawn as one node."""

    id: str = Field(
        description="an operator's name, or `module NAME`, with a number where a module has several nodes"
    )
    kind: Literal["operator", "module", "input", "output"]
    name: str
    type: str = Field(description="PNNX type of an operator; module")
    module: str = Field(description="path of the module that it lies in; empty for the network itself")
    operators: list[str] = Field(
        description="names of the operators that it stands for, in order of execution"
    )
    x: float = Field(description="left side in pixels")
    y: float = Field(description="upper side in pixels")
    width: float
    height: float
    rank: int = Field(description="row, from 0; every edge leads to a higher one")


class LayoutEdge(BaseModel):
    """A line from one node down to another."""

    source: str
    target: str
    operand: str = Field(description="name of the operand, the first where there are several")
    operands: list[str]
    points: list[tuple[float, float]] = Field(
        description="x and y of what the line passes, from the lower side of its source to the upper side of its target"
    )
    stub: bool = Field(
        description="whether only the ends of this long line should be drawn, each named for the node at the other"
    )


class LayoutModule(BaseModel):
    """A module of the network, as names of operators show it."""

    name: str = Field(description="its path, such as layer1.0")
    parent: str = Field(description="path of the module around it; empty for the network itself")
    operator_count: int
    open: bool = Field(description="whether it is drawn as what it consists of")


class LayoutView(BaseModel):
    """Where a graph is drawn, in pixels; y grows downwards."""

    model: str
    version: str
    operator_count: int
    width: float
    height: float
    nodes: list[LayoutNode]
    edges: list[LayoutEdge]
    modules: list[LayoutModule]
