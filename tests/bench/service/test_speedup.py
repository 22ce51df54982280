"""The speedup over other servers."""

from tests.bench.service.load import Timings
from tests.bench.service.results import OURS, OURS_TWICE, LoadResult
from tests.bench.service.speedup import shortfalls, speedups


def load(server: str, per_second: float, connections: int = 16, form: str = "binary") -> LoadResult:
    return LoadResult(server, "digits", form, connections, Timings(per_second, 1.0, 2.0))


def test_speedup_is_that_at_the_most_connections() -> None:
    loads = [load(OURS, 10, 1), load(OURS, 60), load("LitServe", 20), load("LitServe", 1, 1)]
    assert speedups([*loads, load("LitServe", 1, form="JSON")]) == {"LitServe": 3.0}


def test_speedup_of_two_processes_is_one_over_other_servers() -> None:
    loads = [load(OURS, 60), load(OURS_TWICE, 100), load("Triton, instances", 50)]
    assert speedups(loads) == {"Triton, instances": 1.2}
    assert speedups(loads, OURS_TWICE) == {"Triton, instances": 2.0}


def test_speedup_that_is_too_small_is_reported() -> None:
    found = speedups(
        [load(OURS, 59), load("LitServe", 20), load("MLServer, workers", 20), load("FastAPI", 90)]
    )
    assert shortfalls(found) == ["LitServe: 2.95 times its requests per second; at least 3 times are wanted"]


def test_nothing_is_reported_of_what_was_not_measured() -> None:
    assert speedups([load("LitServe", 20)]) == {}
    assert speedups([]) == {}
    assert shortfalls({}) == []
