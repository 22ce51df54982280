"""Schemas of what the inside of a model looks like, for the OpenAPI description."""

from typing import Any

from pydantic import BaseModel, Field

from service.schemas import LayerPrecision, OperandView


class HistogramView(BaseModel):
    """How often values of an attribute occur."""

    edges: list[float] = Field(description="edges of the classes, ascending, one more than there are counts")
    counts: list[int]


class AttributeDetail(BaseModel):
    """An attribute of an operator, with its values' distribution; of complex ones that of their absolute values."""

    name: str
    shape: list[int]
    dtype: str
    bytes: int
    elements: int
    counted: int = Field(description="elements that were looked at: every second, third … of very many")
    min: float | None = Field(default=None, description="of the finite ones; null where there is none")
    max: float | None = None
    mean: float | None = None
    std: float | None = None
    nan: int = 0
    inf: int = 0
    histogram: HistogramView | None
    filters: list[list[list[float | None]]] | None = Field(
        default=None,
        description="first channels of at most 64 filters, or a matrix at a step; null where values are not finite",
    )


class OperatorDetail(BaseModel):
    """An operator of a model in full."""

    model: str
    version: str
    name: str
    type: str
    module: str = Field(description="path of the module that it belongs to; empty for the network itself")
    parameters: dict[str, Any]
    multiply_adds: int | None = Field(description="multiply-adds of a run on the declared shapes")
    precision: LayerPrecision
    inputs: list[OperandView]
    outputs: list[OperandView]
    attributes: list[AttributeDetail]


class ScheduleStep(BaseModel):
    """One step of an execution: one operator."""

    step: int
    operator: str
    type: str
    inputs: list[str] = Field(description="operands that it takes")
    outputs: list[str] = Field(description="operands that it gives")
    became_ready: list[str] = Field(description="operators whose last missing input it gave")
    waits_for: dict[str, int] = Field(
        description="operators that take its outputs and are not ready yet -> inputs that they still lack"
    )
    ready: list[str] = Field(description="operators that are ready after the step, next first; at most 50")
    ready_count: int


class ScheduleView(BaseModel):
    """The breadth-first execution of a model, or a part of it."""

    model: str
    version: str
    operator_count: int
    ready: list[str] = Field(description="operators that are ready before the first step; at most 50")
    ready_count: int
    steps: list[ScheduleStep]


class ExpressionQuestion(BaseModel):
    """An expression, and the values that it is computed for."""

    text: str = Field(
        description="the expression, as it stands after expr= in a .param file", max_length=2000
    )
    values: list[Any] = Field(
        default=[], description="@0, @1 …: numbers, lists or lists of lists of numbers", max_length=64
    )


class ExpressionToken(BaseModel):
    """A token of an expression."""

    text: str
    kind: str
    start: int = Field(description="offset of its first character")
    end: int = Field(description="offset after its last character")


class ExpressionStep(BaseModel):
    """One step of computing an expression in reverse Polish notation."""

    token: str
    start: int
    taken: int = Field(description="values that it took from the stack")
    depth: int = Field(description="values on the stack after it")
    stack: list[dict[str, Any]] = Field(
        description="the topmost of these, the top last: shape, dtype, the first elements, and all as text"
    )


class ExpressionResponse(BaseModel):
    """An expression taken apart."""

    expression: str
    tokens: list[ExpressionToken]
    tree: dict[str, Any] = Field(description="text, start, and children, which are such trees")
    postfix: list[str] = Field(description="reverse Polish notation")
    operands: list[int] = Field(description="which operands occur: 0 for @0")
    steps: list[ExpressionStep] = Field(description="empty where values are needed and none are given")
    value: dict[str, Any] | None
