"""What goes over the wire, for the API's description. `/infer` and `/graph` answer ready-made bytes of these shapes."""

from typing import Any, Literal

from pydantic import BaseModel, Field

Shape = list[int]
OpenShape = list[int | None]
Number = float | Literal["NaN", "Infinity", "-Infinity"]
"""JSON has no numbers for NaN and the infinities: their names stand for them."""


class ErrorBody(BaseModel):
    """Every error."""

    error: str = Field(description="what is wrong, in one sentence")
    code: str = Field(description="what is wrong, for programs", examples=["model_not_found"])
    details: dict[str, Any] = Field(description="what a program needs to react")


class Health(BaseModel):
    """State of the server."""

    status: Literal["alive", "ready"]


class Index(BaseModel):
    """What is here."""

    name: str
    version: str
    models: list[str]
    endpoints: list[str]


class PortView(BaseModel):
    """An input or output of a model."""

    name: str = Field(description="name of the pnnx.Input or pnnx.Output operator")
    operand: str = Field(description="name of the operand that carries the value")
    shape: OpenShape | None = Field(description="null where a dimension, or all of them, is open")
    dtype: str | None = Field(description="PNNX name: f32, i64, …")


class AttributeView(BaseModel):
    """A weight."""

    shape: Shape
    dtype: str


class NodeView(BaseModel):
    """An operator."""

    name: str
    type: str
    parameters: dict[str, Any]
    attributes: dict[str, AttributeView]
    inputs: list[str]
    outputs: list[str]
    multiply_adds: int | None = Field(description="of one run on the declared shapes")


class OperandView(BaseModel):
    """An edge."""

    name: str
    shape: OpenShape | None
    dtype: str | None
    producer: str
    consumers: list[str]


class GraphView(BaseModel):
    """A model's graph."""

    model: str
    version: str
    nodes: list[NodeView]
    operands: list[OperandView]
    execution_order: list[str]


_COMPUTED_BY = (
    "which backend computed it: the compiled program that serves (native), or a run of numpy layers (numpy), as is all "
    "that the kernels of such a program keep in registers"
)
_OBSERVED = (
    "true where the run kept operands or took statistics besides (capture, trace=stats): its times are not those of "
    "runs that serve; left out of all others"
)


class Tensor(BaseModel):
    """An output, or a captured operand."""

    name: str
    shape: Shape | None
    dtype: str
    data: Any = Field(description="nested lists; NaN and infinities as their names, complex as [re, im]")


class CapturedTensor(Tensor):
    """A captured operand."""

    backend: Literal["native", "numpy"] = Field(description=_COMPUTED_BY)


class TimingView(BaseModel):
    """Milliseconds from the end of the request's body to the end of the answer's making."""

    decode_ms: float
    queue_ms: float
    forward_ms: float
    encode_ms: float
    total_ms: float
    observed: Literal[True] | None = Field(default=None, description=_OBSERVED)


class StatisticsView(BaseModel):
    """Of the finite elements of an output."""

    min: Number | None
    max: Number | None
    mean: Number | None
    std: Number | None
    nan: int
    inf: int


class TracedOperand(BaseModel):
    """An operand as a layer saw it."""

    name: str
    shape: Shape | None
    dtype: str
    statistics: StatisticsView | None = Field(default=None, description="of outputs, with trace=stats")
    backend: Literal["native", "numpy"] | None = Field(
        default=None, description=f"of outputs with statistics, {_COMPUTED_BY}"
    )


class TracedLayer(BaseModel):
    """What one layer did."""

    index: int
    name: str
    type: str
    inputs: list[TracedOperand]
    outputs: list[TracedOperand]
    start_ms: float
    duration_ms: float
    share: float = Field(description="part of all layers' time, 0 to 1")
    multiply_adds: int
    bytes: int = Field(description="of inputs, attributes and outputs")
    backend: Literal["native", "numpy", "folded"] = Field(
        description="what did the work: a compiled kernel, numpy, or nothing any more, as no input changes the result"
    )
    fused: list[str] = Field(
        description="names of the layers whose work was done in the same go, and is in its time"
    )
    fused_into: str | None = Field(
        description="name of the layer that did this one's work; null for all others"
    )


class Trace(BaseModel):
    """What a run did."""

    total_ms: float
    observed: Literal[True] | None = Field(default=None, description=_OBSERVED)
    layers: list[TracedLayer]


class InferAnswer(BaseModel):
    """What `/infer` answers."""

    model: str
    version: str
    request_id: str
    predictions: list[list[dict[str, Any]]] | None = Field(
        default=None,
        description="for each item of the batch, best first; where the model has a task that predicts",
    )
    outputs: list[Tensor]
    timing: TimingView
    captured: list[CapturedTensor] | None = Field(default=None, description="operands that were asked for")
    trace: Trace | None = Field(default=None, description="left out with trace=off")
