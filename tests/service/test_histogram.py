from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from service.histogram import HTTP_SECONDS, Histogram


def test_values_count_up_to_each_bound() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.5):
        histogram.observe(value)
    assert histogram.cumulative() == [(1.0, 2), (2.0, 3), (inf, 4)]
    assert (histogram.count, histogram.total) == (4, 5.5)


@settings(max_examples=100)
@given(st.lists(st.floats(0, 20)))
def test_every_bound_counts_the_values_up_to_it(values: list[float]) -> None:
    histogram = Histogram(HTTP_SECONDS)
    for value in values:
        histogram.observe(value)
    expected = [(bound, sum(value <= bound for value in values)) for bound in (*HTTP_SECONDS, inf)]
    assert histogram.cumulative() == expected
