"""Operators, the order of execution and expressions, in detail."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from service.config.settings import Settings
from service.inspection.schemas import ExpressionResponse, OperatorDetail, ScheduleView
from service.services import services_of
from tests.service.api.responses import check_error
from tests.service.conftest import client_of, running

pytestmark = pytest.mark.anyio

DIGITS = Path(__file__).parents[3] / "models/digits"


@pytest.fixture(scope="module")
async def digits() -> AsyncIterator[tuple[AsyncClient, FastAPI]]:
    settings = Settings(models=DIGITS, workers=1, backend="numpy", warm_up=False)
    async with running(settings) as app, client_of(app) as client:
        yield client, app


async def test_an_operator_is_shown_with_its_weights(digits: tuple[AsyncClient, FastAPI]) -> None:
    client, app = digits
    graph = services_of(app).repository.find("digits").graph
    operator = next(operator for operator in graph.operators if operator.name == "stem.conv")
    response = await client.get(f"/graph/operators/{operator.name}")
    shown = OperatorDetail.model_validate(response.json(), strict=True)
    assert (shown.name, shown.type, shown.module) == (operator.name, "nn.Conv2d", "stem")
    assert shown.parameters["kernel_size"] == [3, 3]
    weight = {attribute.name: attribute for attribute in shown.attributes}["weight"]
    values = operator.attrs["weight"].array()
    assert (weight.shape, weight.dtype, weight.bytes) == (list(values.shape), "f32", values.nbytes)
    assert weight.min == values.min()
    assert weight.mean == pytest.approx(float(np.mean(values, dtype=np.float64)))
    assert weight.histogram is not None
    assert sum(weight.histogram.counts) == weight.elements == weight.counted == values.size
    assert np.array_equal(np.array(weight.filters), values[:64, 0])
    assert [operand.name for operand in shown.inputs] == [operand.name for operand in operator.inputs]
    assert shown.outputs[0].shape == [None, 16, 28, 28] or shown.outputs[0].shape == [1, 16, 28, 28]
    again = await client.get(
        f"/graph/operators/{operator.name}", headers={"If-None-Match": response.headers["etag"]}
    )
    assert again.status_code == 304


async def test_an_unknown_operator_is_an_error(client: AsyncClient) -> None:
    response = await client.get("/graph/operators/no/such?model=pair")
    assert check_error(response, 404, "operator_not_found") == {"model": "pair", "operator": "no/such"}


async def test_the_schedule_is_that_of_the_engine(client: AsyncClient, app: FastAPI) -> None:
    shown = ScheduleView.model_validate((await client.get("/graph/schedule?model=pair")).json(), strict=True)
    graph = services_of(app).repository.find("pair").graph
    assert [step.operator for step in shown.steps] == [operator.name for operator in graph.execution_order]
    assert shown.ready == ["left", "right"]
    first, second, third = shown.steps[:3]
    assert (first.operator, first.ready, first.waits_for) == ("left", ["right"], {"sum": 1})
    assert (second.operator, second.became_ready, second.waits_for) == ("right", ["sum"], {})
    assert third.became_ready == ["relu", "first"]
    assert (third.inputs, third.outputs) == (["a", "b"], ["s"])
    assert shown.steps[-1].ready == []


async def test_the_schedule_of_a_whole_network_is_that_of_the_engine(
    digits: tuple[AsyncClient, FastAPI],
) -> None:
    client, app = digits
    order = [operator.name for operator in services_of(app).repository.find(None).graph.execution_order]
    assert [step["operator"] for step in (await client.get("/graph/schedule")).json()["steps"]] == order
    part = (await client.get("/graph/schedule?first=3&count=2")).json()
    assert [(step["step"], step["operator"]) for step in part["steps"]] == [(3, order[3]), (4, order[4])]


async def explain(client: AsyncClient, text: str, *values: Any) -> dict[str, Any]:
    response = await client.post("/expression", json={"text": text, "values": values})
    assert response.status_code == 200, response.text
    ExpressionResponse.model_validate(response.json(), strict=True)
    shown: dict[str, Any] = response.json()
    return shown


async def test_an_expression_is_taken_apart(client: AsyncClient) -> None:
    shown = await explain(client, "add(@0,mul(@1,0.5))", 3, [4.0, 8.0])
    assert [token["text"] for token in shown["tokens"]][:6] == ["add", "(", "@0", ",", "mul", "("]
    assert (shown["tokens"][4]["start"], shown["tokens"][4]["end"]) == (7, 10)
    assert shown["postfix"] == ["@0", "@1", "0.5", "mul", "add"]
    assert shown["tree"]["text"] == "add"
    assert [child["text"] for child in shown["tree"]["children"]] == ["@0", "mul"]
    assert [step["token"] for step in shown["steps"]] == shown["postfix"]
    assert [step["depth"] for step in shown["steps"]] == [1, 2, 3, 2, 1]
    assert shown["steps"][3]["stack"][1]["data"] == [2.0, 4.0]
    assert shown["value"]["data"] == [5.0, 7.0]
    assert shown["value"]["dtype"] == "float32"


async def test_steps_keep_what_later_steps_write_over(client: AsyncClient) -> None:
    shown = await explain(client, "neg(neg(neg(@0)))", [1.0, 2.0])
    assert [step["stack"][-1]["data"] for step in shown["steps"]] == [[1, 2], [-1, -2], [1, 2], [-1, -2]]


async def test_lists_show_their_beginning_and_each_value_is_written_once(client: AsyncClient) -> None:
    shown = await explain(client, "[[@0,@1],[]," + ",".join(["@1"] * 20) + "]", [1.5, 2.5], 3)
    assert shown["steps"][3]["stack"] == [
        {"shape": None, "dtype": "tuple", "text": "([1.5, 2.5], 3)"},
        {"shape": None, "dtype": "tuple", "text": "()"},
    ]
    assert shown["value"]["text"] == "(([1.5, 2.5], 3), (), " + "3, " * 6 + "…)"
    # lists of lists of tables: a short text whose every step showed all of them
    one = "[" + ",".join(["add(@0,@1)"] * 5) + "]"
    column, row = [[1.5]] * 64, [[2.123456] * 15]
    response = await client.post(
        "/expression", json={"text": f"[{','.join([one] * 30)}]", "values": [column, row]}
    )
    assert len(response.content) < 16_000_000


async def test_without_values_there_are_no_steps(client: AsyncClient) -> None:
    shown = await explain(client, "add(@0,1)")
    assert (shown["steps"], shown["value"], shown["operands"]) == ([], None, [0])
    assert (await explain(client, "add(2,3)"))["value"]["text"] == "5"


async def test_what_json_cannot_say_is_text(client: AsyncClient) -> None:
    assert (await explain(client, "div(@0,0.0)", [1.0, 0.0]))["value"]["data"] == ["inf", "nan"]


@pytest.mark.parametrize(
    ("question", "status", "code"),
    [
        ({"text": "add(@0,"}, 422, "invalid_expression"),
        ({"text": "nonsense(@0)", "values": [1]}, 422, "invalid_expression"),
        ({"text": "add(@0,@1)", "values": [1]}, 422, "invalid_expression"),
        ({"text": "@0", "values": ["x"]}, 422, "invalid_value"),
        ({"text": "@0", "values": [[1, [2]]]}, 422, "invalid_value"),
        ({"text": "@0", "values": [[1] * 65]}, 422, "invalid_value"),
        ({"text": "@0", "values": [[[[1]]]]}, 422, "invalid_value"),
        ({"text": "neg(" * 101 + "@0" + ")" * 101, "values": [1]}, 422, "invalid_expression"),
        ({"text": "x" * 2001}, 422, "invalid_parameter"),
        ({"values": [1]}, 422, "invalid_parameter"),
        ([], 422, "invalid_parameter"),
    ],
)
async def test_expressions_that_cannot_be_computed(
    client: AsyncClient, question: Any, status: int, code: str
) -> None:
    check_error(await client.post("/expression", json=question), status, code)


async def test_an_error_shows_where(client: AsyncClient) -> None:
    response = await client.post("/expression", json={"text": "add(@0,,1)"})
    assert check_error(response, 422, "invalid_expression")["position"] == 7


async def test_bodies_that_are_no_question(client: AsyncClient) -> None:
    check_error(await client.post("/expression", content=b"{"), 400, "invalid_json")
    check_error(await client.post("/expression", content=b" " * 9_000_000), 413, "body_too_large")
