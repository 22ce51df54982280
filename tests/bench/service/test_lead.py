"""The lead over other servers."""

from tests.bench.service.generator import Timings
from tests.bench.service.lead import OURS, leads, leads_line, shortfalls
from tests.bench.service.table import Cell


def cell(server: str, per_second: float, connections: int = 16, form: str = "binary") -> Cell:
    return Cell(server, "digits", form, connections, Timings(per_second, 1.0, 2.0))


def test_lead_is_that_at_the_most_connections() -> None:
    cells = [cell(OURS, 10, 1), cell(OURS, 60), cell("LitServe", 20), cell("LitServe", 1, 1)]
    assert leads([*cells, cell("LitServe", 1, form="JSON")]) == {"LitServe": 3.0}


def test_what_is_too_little_is_told() -> None:
    found = leads([cell(OURS, 59), cell("LitServe", 20), cell("MLServer, workers", 20), cell("FastAPI", 90)])
    assert shortfalls(found) == ["LitServe: 2.95 times its requests a second; 3 times are wanted"]
    assert leads_line(found).startswith("digits, binary: 2.95 times LitServe, 2.95 times MLServer, workers")


def test_nothing_is_told_of_what_was_not_measured() -> None:
    assert leads([cell("LitServe", 20)]) == {}
    assert leads([]) == {}
    assert shortfalls({}) == []
    assert leads_line({}) == ""
