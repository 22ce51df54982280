"""What goes over the wire, for the API's description. `/infer` and `/graph` answer ready-made bytes of these shapes."""

from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from service.graph_view import describe_ports
from service.loaded_model import LoadedModel
from service.model_entry import UNLOADED, WHOLE_MODEL, ModelEntry, ModelState

Shape = list[int]
OpenShape = list[int | None]
State = Literal["ready", "broken", "unloaded", "loading"]
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


class VersionView(BaseModel):
    """A version of a model."""

    version: str
    state: State
    reason: str | None = Field(default=None, description="why it is broken")


class ModelSummary(BaseModel):
    """A model in the list of models, in the version that answers where none is asked for."""

    name: str
    version: str | None = Field(default=None, description="null where no version is served")
    versions: list[VersionView] = Field(default=[], description="all versions, lowest first")
    state: State
    reason: str | None = Field(default=None, description="why it, or versions of it, are broken")
    task: str | None = None
    description: str | None = None
    inputs: list[PortView] = []
    outputs: list[PortView] = []
    parameter_count: int | None = Field(default=None, description="elements of all attributes")
    bytes: int | None = Field(default=None, description="bytes of all attributes")

    @classmethod
    def of(cls, entry: ModelEntry, version: str | None = None) -> Self:
        """Describe a model in one version; in the highest that is served where none is named.

        Raises:
            ServiceError: 404 `version_not_found`.
        """
        known = {"name": entry.name, "versions": _versions(entry)}
        if version in entry.unavailable or not entry.versions:
            reason = entry.unavailable.get(version or WHOLE_MODEL, entry.reason)
            state = _state(entry, reason)
            return cls.model_validate(
                {**known, "version": version, "state": state, "reason": reason if state == "broken" else None}
            )
        model = entry.find(version)
        return cls.model_validate({**_describe(model), **known, "reason": entry.reason or None})


class WarmedUpView(BaseModel):
    """Shapes that a model was compiled for when it was loaded."""

    shapes: list[Shape] = Field(description="one per input, in order")
    compiled: bool = Field(description="false where numpy does all the work: it compiles nothing")
    seconds: float


class ModelDetail(ModelSummary):
    """A model and all that is known of it."""

    labels: list[str] | None = Field(default=None, description="names of the classes, in order of index")
    multiply_adds: int | None = Field(default=None, description="of one run on the declared shapes")
    max_batch_size: int | None = Field(
        default=None, description="most rows of a run that serves several requests; 1: each is run on its own"
    )
    batching_refused: str | None = Field(
        default=None, description="why requests are run one by one although more was asked for"
    )
    warmed_up: list[WarmedUpView] = Field(
        default=[],
        description="what it was compiled for when it was loaded; other shapes are compiled when they first come",
    )


class ModelList(BaseModel):
    """All models, by name."""

    models: list[ModelSummary]


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


class Tensor(BaseModel):
    """An output, or a captured operand."""

    name: str
    shape: Shape | None
    dtype: str
    data: Any = Field(description="nested lists; NaN and infinities as their names, complex as [re, im]")


class PredictionView(BaseModel):
    """A class and how likely it is."""

    label: str
    index: int
    probability: Number


class TimingView(BaseModel):
    """Milliseconds from the end of the request's body to the end of the answer's making."""

    decode_ms: float
    queue_ms: float
    forward_ms: float
    encode_ms: float
    total_ms: float


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
    layers: list[TracedLayer]


class InferAnswer(BaseModel):
    """What `/infer` answers."""

    model: str
    version: str
    request_id: str
    predictions: list[list[PredictionView]] | None = Field(
        default=None,
        description="for each item of the batch, best first; where the model has a task that predicts",
    )
    outputs: list[Tensor]
    timing: TimingView
    captured: list[Tensor] | None = Field(default=None, description="operands that were asked for")
    trace: Trace | None = Field(default=None, description="left out with trace=off")


def _describe(model: LoadedModel) -> dict[str, Any]:
    plan = model.graph.declared_plan()
    return {
        "version": model.version,
        "state": "ready",
        "task": model.config.task,
        "description": model.config.description,
        "inputs": describe_ports(model.graph.inputs),
        "outputs": describe_ports(model.graph.outputs),
        "parameter_count": model.parameter_count,
        "bytes": model.byte_count,
        "labels": model.config.labels,
        "multiply_adds": None if plan is None else plan.multiply_adds,
        "max_batch_size": model.batching.max_batch_size,
        "batching_refused": model.batching.refusal,
        "warmed_up": [
            {"shapes": item.shapes, "compiled": item.is_compiled, "seconds": round(item.seconds, 3)}
            for item in model.warmed_up
        ],
    }


def _versions(entry: ModelEntry) -> list[VersionView]:
    return [
        VersionView(version=line.version, state="ready")
        if line.state is ModelState.READY
        else VersionView(
            version=line.version,
            state=_state(entry, line.reason),
            reason=None if line.reason == UNLOADED else line.reason,
        )
        for line in entry.index()
        if line.version != WHOLE_MODEL
    ]


def _state(entry: ModelEntry, reason: str) -> State:
    return "loading" if entry.is_loading else "unloaded" if reason == UNLOADED else "broken"
