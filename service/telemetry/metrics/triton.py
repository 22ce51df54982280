"""Counters under Triton's names, which are those of the statistics."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric, UnknownMetricFamily

_COUNTERS = (
    ("request_success", "successful requests", "kuiper_request_seconds", "_count"),
    ("count", "items (rows) of successful requests", "statistics_items", "_total"),
    ("exec_count", "runs; a batch is one run", "kuiper_batch_size", "_count"),
    ("request_failure", "failed requests, by reason", "statistics_failures", "_total"),
)
_DURATIONS = (
    (
        "request",
        "from the end of a request's body to the end of its response",
        "kuiper_request_seconds",
        "_sum",
    ),
    ("queue", "waiting in the queue and for a batch", "kuiper_queue_seconds", "_sum"),
    ("compute_input", "decoding inputs", "statistics_input_seconds", "_total"),
    ("compute_infer", "running the model", "kuiper_compute_seconds", "_sum"),
    ("compute_output", "encoding responses", "statistics_output_seconds", "_total"),
)
"""Each with its help, and the family and the suffix of the samples that it shows."""


def triton_families(families: Mapping[str, Metric]) -> Iterator[Metric]:
    """Yield the counters under Triton's names.

    These lack the `_total` with which both text formats want a counter's name to end. Their type is therefore left open
    (`untyped` or `unknown`), which makes no difference to Prometheus.

    Args:
        families: those of the statistics, by name.
    """
    for name, text, source, suffix in _COUNTERS:
        yield _family(f"nv_inference_{name}", text, families.get(source), suffix, 1)
    for name, text, source, suffix in _DURATIONS:
        description = f"total microseconds of successful requests: {text}"
        yield _family(f"nv_inference_{name}_duration_us", description, families.get(source), suffix, 1e6)


def _family(name: str, text: str, source: Metric | None, suffix: str, factor: float) -> Metric:
    family = UnknownMetricFamily(name, text)
    for sample in () if source is None else source.samples:
        if sample.name.endswith(suffix):
            family.add_sample(name, sample.labels, round(sample.value * factor))
    return family
