"""Calls that have ended, made by hand."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from engine import LayerTrace, OperandTrace, RunTrace
from service.codec import Decoded
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import CallStatus, Job, ProtocolName, Timestamps

MS = 1_000_000
"""Nanoseconds of a millisecond."""
START = 5_000 * MS
"""When the calls made here are received."""
TIMESTAMPS = Timestamps(
    received=START,
    queued=START + 1 * MS,
    decode_start=START + 4 * MS,
    decode_end=START + 6 * MS,
    forward_start=START + 7 * MS,
    forward_end=START + 17 * MS,
    encode_end=START + 20 * MS,
)
"""3 ms in the queue, 2 ms decoding, 1 ms waiting for a batch, 10 ms running, 3 ms encoding."""


def make_layer(index: int, type: str, start_us: float, duration_us: float, **changes: Any) -> LayerTrace:
    layer = LayerTrace(
        index=index,
        name=f"layer_{index}",
        type=type,
        inputs=(OperandTrace("a", (1, 3), "f32"),),
        outputs=(OperandTrace("b", (1, 4), "f32"),),
        start_us=start_us,
        duration_us=duration_us,
        share=0.5,
        multiply_adds=12,
        bytes_moved=76,
    )
    return layer._replace(**changes)


def make_trace(start_ns: int = 0) -> RunTrace:
    """Return the trace of a run of three layers that fits into the stamps' 10 ms."""
    layers = (
        make_layer(0, "nn.Conv2d", 100.0, 4000.0),
        make_layer(1, "nn.ReLU", 4200.0, 20.0, multiply_adds=0),
        make_layer(2, "nn.Conv2d", 4300.0, 5000.0),
    )
    return RunTrace(9300.0, layers, start_ns)


def make_job(
    status: CallStatus = CallStatus.SUCCESS,
    *,
    model: str = "digits",
    version: str = "1",
    request_id: str = "r1",
    timestamps: Timestamps = TIMESTAMPS,
    **changes: Any,
) -> Job[None]:
    """Return a call that has ended, which ran alone."""
    job = Job[None](
        model=cast(LoadedModel, SimpleNamespace(name=model, version=version)),
        protocol=ProtocolName.INFER,
        request_id=request_id,
        decode=lambda: Decoded({}),
        encode=lambda _: None,
        timestamps=timestamps,
    )
    job.end(status)
    values = {"batch_size": 1, "rows": 1, "leads_run": True, "worker": "worker-0"}
    for name, value in (values | changes).items():
        setattr(job, name, value)
    return job


def shifted(milliseconds: float, timestamps: Timestamps = TIMESTAMPS) -> Timestamps:
    """Return the timestamps of the same call, later."""
    names = ("received", "queued", "decode_start", "decode_end", "forward_start", "forward_end", "encode_end")
    later = {
        name: getattr(timestamps, name) + int(milliseconds * MS)
        for name in names
        if getattr(timestamps, name)
    }
    return replace(timestamps, **later)
