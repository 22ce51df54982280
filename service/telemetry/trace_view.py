"""Recent runs as `/traces` shows them; layers have the form that they have in responses to `/infer`."""

from dataclasses import asdict
from typing import Any, Literal

from pydantic import BaseModel, Field

from service.codec import describe_trace
from service.repository.traffic_schemas import ShadowRunView
from service.scheduling.job import Timestamps
from service.schemas import Trace
from service.telemetry.recent_runs import RecentRun


class TraceSummary(BaseModel):
    """A traced run of a request."""

    process: int | None = Field(description="number of the process that ran it; null where there is one")
    request_id: str = Field(
        description="id of the request, as its client chose it; several requests may share one"
    )
    model: str
    version: str
    protocol: Literal["infer", "v1", "v2", "grpc"]
    ending: Literal["SUCCESS", "REJECTED", "CANCELED", "BACKEND", "OTHER"]
    received_ms: float = Field(description="end of the request's body, in milliseconds since the epoch")
    total_ms: float = Field(description="milliseconds from then until the response was encoded")
    batch_size: int = Field(description="items of the run")
    observed: bool = Field(
        description="whether the run kept operands or computed statistics, which makes it slower than other runs"
    )


class ChromeTrace(BaseModel):
    """A trace event file, which ui.perfetto.dev opens."""

    displayTimeUnit: Literal["ms"]  # noqa: N815  # the format's own spelling
    traceEvents: list[dict[str, Any]]  # noqa: N815


class TraceList(BaseModel):
    """The last traced runs, newest first."""

    traces: list[TraceSummary]


class TraceDetail(TraceSummary):
    """A traced run of a request, with its layers."""

    items: int = Field(description="items that the request brought")
    worker: str = Field(description="name of the thread that ran it")
    error: str | None = Field(description="why it failed")
    stamps: dict[str, float | None] = Field(
        description="milliseconds from the end of the body to each stage; null for a stage that was never reached"
    )
    trace: Trace
    shadow: ShadowRunView | None = Field(
        default=None, description="the same request on another version; null where none is kept"
    )


def summarize(run: RecentRun, process: int | None = None) -> dict[str, Any]:
    """Return the fields of a `TraceSummary`; `process` is where it ran, of several processes."""
    return {
        "process": process,
        "request_id": run.request_id,
        "model": run.model,
        "version": run.version,
        "protocol": run.protocol.value,
        "ending": run.status.value,
        "received_ms": round(run.received_ms, 3),
        "total_ms": round(run.total_ms, 4),
        "batch_size": run.batch_size,
        "observed": run.trace.is_observed,
    }


def describe(
    run: RecentRun, shadow: ShadowRunView | None = None, process: int | None = None
) -> dict[str, Any]:
    """Return the fields of a `TraceDetail`.

    Args:
        run: the run.
        shadow: the run of the same request on another version.
        process: where it ran, of several processes.
    """
    return {
        **summarize(run, process),
        "items": run.items,
        "worker": run.worker,
        "error": run.error,
        "stamps": _milliseconds(run.timestamps),
        "trace": describe_trace(run.trace),
        "shadow": None if shadow is None else shadow.model_dump(),
    }


def _milliseconds(timestamps: Timestamps) -> dict[str, float | None]:
    moments = asdict(timestamps)
    received = moments.pop("received")
    return {
        f"{stage}_ms": round((moment - received) / 1e6, 4) if moment else None
        for stage, moment in moments.items()
    }
