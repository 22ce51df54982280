"""What the collectors share: the labels of a model, and how a histogram becomes samples."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING

from service.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client.core import HistogramMetricFamily

MODEL_LABELS = ("model", "version")
"""Labels of every series that belongs to a model; `ModelSnapshot.labels` has their values."""


def add_histogram(family: "HistogramMetricFamily", labels: Sequence[str], histogram: Histogram) -> None:
    """Add the samples of one histogram to a family.

    Args:
        family: the family.
        labels: values of the family's labels, in their order.
        histogram: what was counted.
    """
    buckets = [
        (str(bound) if isfinite(bound) else "+Inf", float(count)) for bound, count in histogram.cumulative()
    ]
    family.add_metric(labels, buckets, histogram.total)
