"""Recent runs as `/traces` answers them; layers look as in the answer to `/infer`."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from service.codec import describe_trace
from service.schemas import Trace
from service.telemetry.recent import RecentRun


class TraceSummary(BaseModel):
    """A traced run of a request."""

    request_id: str = Field(description="as the client gave it; the newest run has it where several do")
    model: str
    version: str
    surface: Literal["infer", "v2"]
    ending: Literal["SUCCESS", "REJECTED", "CANCELED", "BACKEND", "OTHER"]
    received_ms: float = Field(description="end of the request's body, in milliseconds since the epoch")
    total_ms: float = Field(description="from then to the end of the answer's making")
    batch_size: int = Field(description="items of the run")
    observed: bool = Field(
        description="whether the run kept operands or took statistics besides: a run that serves takes less time"
    )


class ChromeTrace(BaseModel):
    """A trace event file, which ui.perfetto.dev opens."""

    displayTimeUnit: Literal["ms"]  # noqa: N815  # the format's own spelling
    traceEvents: list[dict[str, Any]]  # noqa: N815


class TraceList(BaseModel):
    """The last traced runs, newest first."""

    traces: list[TraceSummary]


class TraceDetail(TraceSummary):
    """A traced run and all that is known of it."""

    items: int = Field(description="items that the request brought")
    worker: str = Field(description="name of the thread that ran it")
    error: str | None = Field(description="why it was not answered")
    stamps: dict[str, float | None] = Field(
        description="milliseconds from the end of the body; null where the request never came so far"
    )
    trace: Trace


def summarize(run: RecentRun) -> dict[str, Any]:
    """Return a run as `TraceSummary` has it."""
    return {
        "request_id": run.request_id,
        "model": run.model,
        "version": run.version,
        "surface": run.surface.value,
        "ending": run.status.value,
        "received_ms": round(run.received_ms, 3),
        "total_ms": round(run.total_ms, 4),
        "batch_size": run.batch_size,
        "observed": run.trace.is_observed,
    }


def describe(run: RecentRun) -> dict[str, Any]:
    """Return a run as `TraceDetail` has it."""
    return {
        **summarize(run),
        "items": run.items,
        "worker": run.worker,
        "error": run.error,
        "stamps": _stamps(run),
        "trace": describe_trace(run.trace),
    }


def _stamps(run: RecentRun) -> dict[str, float | None]:
    timestamps = run.timestamps
    moments = {
        "queued": timestamps.queued,
        "decode_start": timestamps.decode_start,
        "decode_end": timestamps.decode_end,
        "forward_start": timestamps.forward_start,
        "forward_end": timestamps.forward_end,
        "encode_end": timestamps.encode_end,
    }
    return {
        f"{name}_ms": round((moment - timestamps.received) / 1e6, 4) if moment else None
        for name, moment in moments.items()
    }
