"""The responses of `GET /models` and `GET /models/{name}`."""

from typing import Any, Literal, Self

from pydantic import BaseModel, Field

from engine import Verification
from service.config.choices import PrecisionName
from service.graph.view import count_precisions, describe_ports
from service.repository.loaded_model import LoadedModel
from service.repository.model_entry import UNLOADED, WHOLE_MODEL, ModelEntry
from service.repository.traffic_schemas import TrafficView
from service.schemas import JsonNumber, PortView

InputKind = Literal["image", "text", "tensor"]
ModelStatus = Literal["ready", "broken", "unloaded", "loading"]


class VersionView(BaseModel):
    """A version of a model."""

    version: str
    state: ModelStatus
    reason: str | None = Field(default=None, description="why it is broken")


class ModelSummary(BaseModel):
    """A model in the list of models; described is its default version."""

    name: str
    version: str | None = Field(default=None, description="null if no version is served")
    versions: list[VersionView] = Field(default=[], description="all versions, lowest first")
    state: ModelStatus
    reason: str | None = Field(default=None, description="why it, or versions of it, are broken")
    task: str | None = None
    description: str | None = None
    inputs: list[PortView] = []
    outputs: list[PortView] = []
    parameter_count: int | None = Field(default=None, description="elements of all attributes")
    bytes: int | None = Field(default=None, description="bytes of all attributes")
    traffic: TrafficView | None = Field(
        default=None,
        description="how versions share the requests that name none; null: the highest gets them all",
    )

    @classmethod
    def of(cls, entry: ModelEntry, version: str | None = None, traffic: TrafficView | None = None) -> Self:
        """Describe one version of a model; the default one if none is named.

        Args:
            entry: the model.
            version: the version.
            traffic: how versions share requests.

        Raises:
            ServiceError: 404 `version_not_found`.
        """
        known = {"name": entry.name, "versions": _versions(entry), "traffic": traffic}
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

    shapes: list[list[int]] = Field(description="one per input, in order")
    compiled: bool = Field(description="false if numpy runs all layers, which needs no compilation")
    seconds: float


class RefusalView(BaseModel):
    """A compiled program that is not used; the reference (numpy) implementation runs in its place."""

    inputs: list[list[int]] = Field(description="shapes that the program was compiled for")
    operator: str | None = Field(description="operator at fault; null if the program could not be compiled")
    type: str | None
    fused: list[str] = Field(description="other operators that the same kernel computes")
    difference: JsonNumber | None = Field(
        description="largest difference from the reference layer, divided by its largest value; null if there is none"
    )
    reason: str


class VerificationView(BaseModel):
    """How the results of compiled programs compare with those of the reference (numpy) implementation."""

    checked: int = Field(description="programs that were compared")
    recalled: int = Field(
        default=0, description="programs that another process had compared, and that agreed"
    )
    unchecked: int = Field(description="programs for which no input could be found")
    refused: list[RefusalView] = Field(default=[], description="the most recent programs that are not used")
    refused_count: int = Field(default=0, description="number of programs that are not used")


class ModelDetail(ModelSummary):
    """A model in full detail."""

    labels: list[str] | None = Field(default=None, description="names of the classes, in order of index")
    accepts: list[InputKind] = Field(default=[], description="what requests may bring")
    multiply_adds: int | None = Field(default=None, description="of one run on the declared shapes")
    precision: PrecisionName | None = Field(
        default=None, description="precision that the model is configured to compute in"
    )
    precisions: dict[str, int] = Field(
        default={}, description="number of operators by the precision they are computed in"
    )
    max_batch_size: int | None = Field(
        default=None,
        description="maximum rows of a run that serves several requests; 1: every request runs on its own",
    )
    batching_refused: str | None = Field(
        default=None,
        description="why every request runs on its own although the configuration asks for batches",
    )
    warnings: list[str] = Field(
        default=[],
        description="assumptions made where the model's file says nothing, and contradictions in it",
    )
    warmed_up: list[WarmedUpView] = Field(
        default=[],
        description="shapes compiled when the model was loaded; others are compiled when they are first requested",
    )
    verification: VerificationView | None = None


class SampleView(BaseModel):
    """A file that comes with a model."""

    name: str
    media_type: str
    bytes: int


class SampleList(BaseModel):
    """The files of a model's folder `samples`, by name."""

    samples: list[SampleView]


class ModelList(BaseModel):
    """All models, by name."""

    models: list[ModelSummary]


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
        "accepts": [
            *(("image",) if model.config.image is not None else ()),
            *(("text",) if model.config.text is not None else ()),
            "tensor",
        ],
        "multiply_adds": None if plan is None else plan.multiply_adds,
        "precision": model.graph.precision.value,
        "precisions": count_precisions(model.graph),
        "max_batch_size": model.batching.max_batch_size,
        "batching_refused": model.batching.refusal,
        "warnings": list(model.graph.warnings),
        "warmed_up": [
            {"shapes": item.shapes, "compiled": item.is_compiled, "seconds": round(item.seconds, 3)}
            for item in model.warmed_up
        ],
        "verification": _describe_verification(model.graph.verification),
    }


def _describe_verification(verification: Verification) -> dict[str, Any]:
    return {
        "checked": verification.checked,
        "recalled": verification.recalled,
        "unchecked": verification.unchecked,
        "refused_count": verification.refused_count,
        "refused": [
            {
                "inputs": [spec.shape for spec in refusal.inputs],
                "operator": refusal.operator,
                "type": refusal.type,
                "fused": refusal.fused,
                "difference": refusal.difference,
                "reason": refusal.reason,
            }
            for refusal in verification.refused
        ],
    }


def _versions(entry: ModelEntry) -> list[VersionView]:
    return [
        VersionView(version=line.version, state="ready")
        if line.state == "READY"
        else VersionView(
            version=line.version,
            state=_state(entry, line.reason),
            reason=None if line.reason == UNLOADED else line.reason,
        )
        for line in entry.index()
        if line.version is not None
    ]


def _state(entry: ModelEntry, reason: str) -> ModelStatus:
    return "loading" if entry.is_loading else "unloaded" if reason == UNLOADED else "broken"
