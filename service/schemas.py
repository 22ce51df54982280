"""Schemas of the responses, for the OpenAPI description. `/infer` and `/graph` write the same JSON without pydantic."""

from typing import Any, Literal

from pydantic import BaseModel, Field

OpenShape = list[int | None]
LayerPrecision = Literal["f32", "bf16", "int8", "int4"]
JsonNumber = float | Literal["NaN", "Infinity", "-Infinity"]
"""A number; JSON cannot express NaN and the infinities, so they are written as text."""


class ErrorBody(BaseModel):
    """The body of every error."""

    error: str = Field(description="what is wrong, in one sentence")
    code: str = Field(description="what is wrong, as a name for programs", examples=["model_not_found"])
    details: dict[str, Any] = Field(description="values that a program may need to react")


ERROR_CONTENT: dict[str, Any] = {
    "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorBody.__name__}"}}
}
"""What a response with `ErrorBody` holds, for descriptions. Of the model itself FastAPI would make a validator for each
response of each route, at every start, and use none."""


class Health(BaseModel):
    """The state of the server."""

    status: Literal["alive", "ready"]


class ServerIndex(BaseModel):
    """The server, its models and its endpoints."""

    name: str
    version: str
    models: list[str]
    endpoints: list[str]


class PortView(BaseModel):
    """An input or output of a model."""

    name: str = Field(description="name of the pnnx.Input or pnnx.Output operator")
    operand: str = Field(description="name of the operand that carries the value")
    shape: OpenShape | None = Field(
        description="null for a dynamic dimension, or if the number of dimensions is unknown"
    )
    dtype: str | None = Field(description="PNNX name: f32, i64, …")


class AttributeView(BaseModel):
    """An attribute of an operator, such as its weights."""

    shape: list[int]
    dtype: str


class NodeView(BaseModel):
    """An operator of a graph."""

    name: str
    type: str
    parameters: dict[str, Any]
    attributes: dict[str, AttributeView]
    inputs: list[str]
    outputs: list[str]
    multiply_adds: int | None = Field(description="multiply-adds of a run on the declared shapes")
    precision: LayerPrecision = Field(
        description="what the operands of its products are rounded to, in the program compiled last"
    )


class OperandView(BaseModel):
    """An operand: a value that one operator produces and others consume."""

    name: str
    shape: OpenShape | None
    dtype: str | None
    producer: str
    consumers: list[str]


class GraphView(BaseModel):
    """The graph of a model."""

    model: str
    version: str
    nodes: list[NodeView]
    operands: list[OperandView]
    execution_order: list[str]


_COMPUTED_BY = (
    "the backend: native, the compiled program that serves requests, or numpy, the reference implementation; "
    "values that compiled kernels keep in registers are computed by numpy"
)
_OBSERVED = "true if captures or statistics (capture, trace=stats) lengthened the run; otherwise omitted"
_PIECES = (
    "rows of each part, where rows ran in parts; times, multiply-adds and bytes of layers are sums, statistics cover "
    "all; otherwise omitted"
)


class TensorView(BaseModel):
    """An output or a captured operand."""

    name: str
    shape: list[int] | None
    dtype: str
    data: Any = Field(description="nested lists; NaN and infinities as their names, complex as [re, im]")


class OutputView(TensorView):
    """An output."""

    data: Any = Field(
        default=None,
        description="nested lists, as in captured tensors; omitted with outputs=false",
    )


class ImageView(BaseModel):
    """A picture of the request, and where it lies in the input made of it: input = picture * scale + offset."""

    input: str = Field(description="name of the pnnx.Input operator")
    width: int = Field(description="columns of the upright image")
    height: int
    scale: list[float] = Field(description="pixels of the input per pixel of the picture, along x and y")
    offset: list[float] = Field(description="its upper left corner in the input, x and y in pixels")


class CapturedTensor(TensorView):
    """A captured operand."""

    backend: Literal["native", "numpy"] = Field(description=_COMPUTED_BY)


class TimingView(BaseModel):
    """Milliseconds from the moment when the body of the request was complete until its response was encoded."""

    decode_ms: float
    queue_ms: float
    forward_ms: float
    encode_ms: float
    total_ms: float
    observed: Literal[True] | None = Field(default=None, description=_OBSERVED)


class TensorStatistics(BaseModel):
    """Statistics of the finite elements of a tensor, and how many of the others there are."""

    min: JsonNumber | None
    max: JsonNumber | None
    mean: JsonNumber | None
    std: JsonNumber | None
    nan: int
    inf: int


class TracedOperand(BaseModel):
    """An operand as a layer received or produced it."""

    name: str
    shape: list[int] | None
    dtype: str
    statistics: TensorStatistics | None = Field(default=None, description="of outputs, with trace=stats")
    backend: Literal["native", "numpy"] | None = Field(
        default=None, description=f"of outputs with statistics, {_COMPUTED_BY}"
    )


class TracedLayer(BaseModel):
    """The part of one layer in a run."""

    index: int
    name: str
    type: str
    inputs: list[TracedOperand]
    outputs: list[TracedOperand]
    start_ms: float
    duration_ms: float
    share: float = Field(description="share of the time of all layers, from 0 to 1")
    multiply_adds: int
    bytes: int = Field(description="bytes of inputs, attributes and outputs")
    backend: Literal["native", "numpy", "folded"] = Field(
        description="backend of the layer: native, numpy, or folded if its result is constant"
    )
    fused: list[str] = Field(description="layers fused into this one; their time is part of its time")
    fused_into: str | None = Field(description="layer that this one was fused into, if any")
    precision: LayerPrecision = Field(description="precision of the operands of its products")


class Trace(BaseModel):
    """The trace of a run."""

    total_ms: float
    observed: Literal[True] | None = Field(default=None, description=_OBSERVED)
    pieces: list[int] | None = Field(default=None, description=_PIECES)
    layers: list[TracedLayer]


class InferenceResponse(BaseModel):
    """The response of `/infer`."""

    model: str
    version: str
    request_id: str
    predictions: list[list[dict[str, Any]]] | None = Field(
        default=None,
        description="for each item of the batch, most probable first; only for models whose task makes predictions",
    )
    warnings: list[str] | None = Field(
        default=None, description="doubts about the predictions; omitted without any"
    )
    images: list[ImageView] | None = Field(default=None, description="the images of the request, if any")
    outputs: list[OutputView]
    timing: TimingView
    captured: list[CapturedTensor] | None = Field(
        default=None, description="the operands that the request asked for"
    )
    trace: Trace | None = Field(default=None, description="left out with trace=off")
