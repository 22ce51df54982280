"""Counters under Triton's names, which are those of the statistics."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric, UnknownMetricFamily

_COUNTERS = (
    ("request_success", "successful requests", "kuiper_request_seconds_count"),
    ("count", "items (rows) of successful requests", "statistics_items_total"),
    ("exec_count", "runs; a batch is one run", "kuiper_batch_size_count"),
    ("request_failure", "failed requests, by reason", "statistics_failures_total"),
)
_DURATIONS = (
    ("request", "from the end of a request's body to the end of its response", "kuiper_request_seconds_sum"),
    ("queue", "waiting in the queue and for a batch", "kuiper_queue_seconds_sum"),
    ("compute_input", "decoding inputs", "statistics_input_seconds_total"),
    ("compute_infer", "running the model", "kuiper_compute_seconds_sum"),
    ("compute_output", "encoding responses", "statistics_output_seconds_total"),
)
"""Each with its help, and the name of the samples that it shows: that of their family, and a suffix."""


def triton_families(families: Mapping[str, Metric]) -> Iterator[Metric]:
    """Yield the counters under Triton's names.

    These lack the `_total` with which both text formats want a counter's name to end. Their type is therefore left open
    (`untyped` or `unknown`), which makes no difference to Prometheus.

    Args:
        families: those of the statistics, by name.
    """
    for name, text, source in _COUNTERS:
        yield _family(f"nv_inference_{name}", text, families, source, 1)
    for name, text, source in _DURATIONS:
        description = f"total microseconds of successful requests: {text}"
        yield _family(f"nv_inference_{name}_duration_us", description, families, source, 1e6)


def _family(name: str, text: str, families: Mapping[str, Metric], source: str, factor: float) -> Metric:
    family, shown = UnknownMetricFamily(name, text), families.get(source.rpartition("_")[0])
    for sample in () if shown is None else shown.samples:
        if sample.name == source:
            family.add_sample(name, sample.labels, round(sample.value * factor))
    return family
