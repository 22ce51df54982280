from collections.abc import Callable

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from service.graph.drawing import draw_dot, draw_mermaid
from service.graph.schemas import LayoutView
from service.graph.view import describe_graph
from service.schemas import GraphView
from service.services import services_of

pytestmark = pytest.mark.anyio


async def test_graph_is_json_by_default(client: AsyncClient) -> None:
    response = await client.get("/graph?model=pair")
    view = GraphView.model_validate(response.json(), strict=True)
    assert response.headers["content-type"] == "application/json"
    assert view.model == "pair"
    assert [node.type for node in view.nodes][2:4] == ["pnnx.Expression", "nn.ReLU"]
    assert view.execution_order[0] == "left"
    assert set(response.json()) == set(GraphView.model_fields)


@pytest.mark.parametrize(
    ("form", "draw", "media_type"),
    [("dot", draw_dot, "text/vnd.graphviz"), ("mermaid", draw_mermaid, "text/vnd.mermaid")],
)
async def test_graph_can_be_drawn(
    app: FastAPI, client: AsyncClient, form: str, draw: Callable[..., str], media_type: str
) -> None:
    response = await client.get(f"/graph?model=pair&format={form}")
    graph = services_of(app).repository.find("pair").graph
    assert response.headers["content-type"] == f"{media_type}; charset=utf-8"
    assert response.text == draw(describe_graph(graph), "pair")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("model=none", 404, "model_not_found"),
        ("", 422, "model_required"),
        ("model=pair&format=svg", 422, "invalid_parameter"),
        ("model=pair&format=layout&collapse=some", 422, "invalid_parameter"),
        (f"model=pair&format=layout&expanded={'a' * 2001}", 422, "invalid_parameter"),
    ],
)
async def test_errors(client: AsyncClient, query: str, status: int, code: str) -> None:
    response = await client.get(f"/graph?{query}")
    assert (response.status_code, response.json()["code"]) == (status, code)


async def test_layout_places_operators_and_lines(app: FastAPI, client: AsyncClient) -> None:
    response = await client.get("/graph?model=pair&format=layout")
    drawn = LayoutView.model_validate(response.json())
    graph = services_of(app).repository.find("pair").graph
    assert [node.name for node in drawn.nodes] == [operator.name for operator in graph.execution_order]
    assert {node.name: node.kind for node in drawn.nodes}["left"] == "input"
    assert {(edge.source, edge.target, edge.operand) for edge in drawn.edges} == {
        (operand.producer.name, consumer.name, operand.name)
        for operand in graph.operands.values()
        for consumer in operand.consumers
    }
    assert (drawn.model, drawn.version, drawn.operator_count) == ("pair", "1", len(graph.operators))
    assert set(response.json()) == set(LayoutView.model_fields)


async def test_layout_that_a_page_has_already_is_not_sent_again(
    fresh_app: FastAPI, fresh_client: AsyncClient
) -> None:
    path = "/graph?model=pair&format=layout"
    first = await fresh_client.get(path)
    assert len(services_of(fresh_app).documents) == 1
    again = await fresh_client.get(path, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    other = await fresh_client.get(f"{path}&expanded=a,b", headers={"If-None-Match": '"another"'})
    assert (other.status_code, other.content) == (200, first.content)
    assert len(services_of(fresh_app).documents) == 2
