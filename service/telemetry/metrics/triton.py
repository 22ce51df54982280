"""Counters under Triton's names, which are those of the statistics."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric, UnknownMetricFamily

_DURATION = "microseconds of answered requests, altogether: "
_COUNTERS = (
    ("nv_inference_request_success", "answered requests", "kuiper_request_seconds", "_count", 1),
    ("nv_inference_count", "items (rows) of answered requests", "statistics_items", "_total", 1),
    ("nv_inference_exec_count", "runs; a batch is one run", "kuiper_batch_size", "_count", 1),
    (
        "nv_inference_request_failure",
        "requests that were not answered, by reason",
        "statistics_failures",
        "_total",
        1,
    ),
    (
        "nv_inference_request_duration_us",
        f"{_DURATION}from the end of a request's body to the end of its answer",
        "kuiper_request_seconds",
        "_sum",
        1e6,
    ),
    (
        "nv_inference_queue_duration_us",
        f"{_DURATION}waiting in the queue and for a batch",
        "kuiper_queue_seconds",
        "_sum",
        1e6,
    ),
    (
        "nv_inference_compute_input_duration_us",
        f"{_DURATION}decoding inputs",
        "statistics_input_seconds",
        "_total",
        1e6,
    ),
    (
        "nv_inference_compute_infer_duration_us",
        f"{_DURATION}running the model",
        "kuiper_compute_seconds",
        "_sum",
        1e6,
    ),
    (
        "nv_inference_compute_output_duration_us",
        f"{_DURATION}encoding answers",
        "statistics_output_seconds",
        "_total",
        1e6,
    ),
)
"""Name, help, family and suffix of the sample that it shows, and what that is multiplied by."""


def triton_families(families: Mapping[str, Metric]) -> Iterator[Metric]:
    """Yield the counters under Triton's names.

    These lack the `_total` with which both text formats want a counter's name to end. Their type is therefore left open
    (`untyped` or `unknown`), which makes no difference to Prometheus.

    Args:
        families: those of the statistics, by name.
    """
    for name, text, source, suffix, factor in _COUNTERS:
        counter = UnknownMetricFamily(name, text)
        for sample in families[source].samples if source in families else ():
            if sample.name == source + suffix:
                counter.add_sample(name, sample.labels, round(sample.value * factor))
        yield counter
