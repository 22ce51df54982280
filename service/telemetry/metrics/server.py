"""The worker threads, the decoder processes, and what came of polling for changes of models."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from service.decoding import DECODERS
from service.telemetry.metrics.collector import Snapshot, counter, gauge


def collect_server(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield `kuiper_workers…`, `kuiper_decoders…` and, where models are polled, `kuiper_poll…`."""
    workers, busy = snapshot.settings.worker_count, snapshot.scheduler.busy_workers()
    yield gauge("kuiper_workers", "threads that run models", {(): workers})
    yield gauge("kuiper_workers_busy", "threads that are running a model now", {(): busy})
    yield gauge("kuiper_decoders", "processes that decode large bodies", {(): DECODERS.running})
    yield counter(
        "kuiper_decoders_ended",
        "processes that decoded large bodies and were ended, or ended, during a request",
        {(code,): count for code, count in DECODERS.ended.items()},
        ("code",),
    )
    poller = snapshot.polls
    if poller is None:
        return
    yield counter(
        "kuiper_polls",
        "looks for changes of models, where they are polled",
        {("listed",): poller.succeeded, ("failed",): poller.failed},
        ("outcome",),
    )
    yield counter(
        "kuiper_poll_changes",
        "models that were loaded, refused or removed because a poll found a change",
        {(outcome,): count for outcome, count in poller.changes.items()},
        ("outcome",),
    )
    yield gauge(
        "kuiper_poll_last_success_timestamp_seconds",
        "when a poll could last list the models, in seconds since 1970",
        {(): poller.last_success},
    )
