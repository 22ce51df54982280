"""Large graphs."""

from typing import Any

from tests.console.visit import Visit


def test_a_large_graph_is_drawn_with_its_modules_closed(visit: Visit) -> None:
    visit.open("#/large/graph")
    visit.page.locator("canvas.graph-canvas").wait_for()
    drawn: Any = visit.page.request.get(f"{visit.address}/graph?model=large&format=layout").json()
    assert 10 <= len(drawn["nodes"]) <= 150
    assert sum(len(node["operators"]) for node in drawn["nodes"]) == drawn["operator_count"]
    visit.check()


def test_a_large_graph_is_drawn_open(visit: Visit) -> None:
    visit.open("#/large/graph?collapse=none")
    visit.page.locator("canvas.graph-canvas").wait_for()
    drawn: Any = visit.page.request.get(
        f"{visit.address}/graph?model=large&format=layout&collapse=none"
    ).json()
    assert len(drawn["nodes"]) == drawn["operator_count"] >= 1490
    visit.check()
