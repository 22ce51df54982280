"""The API's description: complete, and its examples work."""

from itertools import chain
from pathlib import Path
from typing import Any

import orjson
import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response
from pydantic import SecretStr, TypeAdapter

from service.app import create_app
from service.codec.formats import media_types
from service.config.settings import Settings
from service.description.examples import examples_for
from service.repository.repository import load_repository
from service.schemas import ErrorBody, InferenceResponse
from service.tasks.classification import ClassPrediction
from tests.service.models import add_model

pytestmark = pytest.mark.anyio


async def describe(client: AsyncClient) -> dict[str, Any]:
    schema: dict[str, Any] = (await client.get("/openapi.json")).json()
    return schema


async def infer_content(client: AsyncClient) -> dict[str, Any]:
    content: dict[str, Any] = (await describe(client))["paths"]["/infer"]["post"]["requestBody"]["content"]
    return content


async def send(client: AsyncClient, model: str, media_type: str, value: Any) -> Response:
    path, headers = f"/infer?model={model}", {"Content-Type": media_type}
    if media_type == "application/json":
        return await client.post(path, json=value)
    if media_type == "multipart/form-data":
        return await client.post(path, files={"file": ("a.png", value)})
    return await client.post(path, content=value, headers=headers)


async def body_of(client: AsyncClient, example: dict[str, Any]) -> Any:
    """Return the body of an example: what stands there, or what the file has that it names."""
    if "externalValue" not in example:
        return example["value"]
    assert "value" not in example
    response = await client.get(f"/{example['externalValue']}")
    assert response.status_code == 200
    return response.content


def validate(response: Response) -> None:
    """Check a response of `/infer`, the predictions of classification among it, against its description."""
    whole = InferenceResponse.model_validate(response.json(), strict=True)
    for prediction in chain.from_iterable(whole.predictions or ()):
        TypeAdapter(ClassPrediction).validate_json(orjson.dumps(prediction), strict=True)


async def test_every_kind_of_body_is_described_and_has_an_example(client: AsyncClient) -> None:
    content = await infer_content(client)
    assert set(content) == set(media_types())
    for media_type in set(content) - {"text/plain"}:  # no model here takes texts; tests/service/text has one
        assert content[media_type]["examples"], media_type


async def test_every_example_works(client: AsyncClient) -> None:
    for media_type, described in (await infer_content(client)).items():
        for example in described.get("examples", {}).values():
            model = example["summary"].split(":")[0]
            assert f"/infer?model={model}'" in example["description"]
            response = await send(client, model, media_type, await body_of(client, example))
            assert response.status_code == 200, (media_type, response.text)
            validate(response)


async def test_every_response_is_described(client: AsyncClient) -> None:
    for path, operations in (await describe(client))["paths"].items():
        for operation in operations.values():
            assert {"200", "500"} <= set(operation["responses"]), path
            for status, response in operation["responses"].items():
                assert response["description"]
                if (path, status) == ("/metrics", "200"):
                    assert set(response["content"]) == {"text/plain", "application/openmetrics-text"}
                    continue
                if (path, status) == ("/models/{name}/samples/{file}", "200"):
                    assert set(response["content"]) == {"*/*"}
                    continue
                schema = response["content"]["application/json"]["schema"]
                is_error = schema.get("$ref", "").endswith("/ErrorBody")
                assert is_error == (status != "200"), (path, status)


async def test_errors_of_infer_are_all_described(client: AsyncClient) -> None:
    responses = (await describe(client))["paths"]["/infer"]["post"]["responses"]
    described = {"200", "400", "403", "404", "406", "408", "413", "415", "421", "422", "500", "503", "504"}
    assert set(responses) == described
    assert set(responses["200"]["content"]) == {"application/json", "application/x-npz", "image/png"}


async def test_parameters_of_infer_are_described(client: AsyncClient) -> None:
    parameters = (await describe(client))["paths"]["/infer"]["post"]["parameters"]
    names = [parameter["name"] for parameter in parameters]
    assert names[:8] == ["model", "version", "trace", "capture", "top_k", "render", "outputs", "timeout"]
    assert len(set(names)) == len(names)


async def test_responses_are_as_described(client: AsyncClient) -> None:
    body = {"inputs": [{"data": [["NaN", "Infinity", 3]]}]}
    response = await client.post("/infer?model=vector&trace=stats&capture=1", json=body)
    assert response.json()["outputs"][0]["data"] == [["NaN", "Infinity", 3]]
    validate(response)
    assert set(response.json()) <= set(InferenceResponse.model_fields)
    ErrorBody.model_validate((await client.get("/nowhere")).json(), strict=True)


async def test_documentation_is_served(client: AsyncClient) -> None:
    response = await client.get("/docs")
    assert response.status_code == 200
    assert '"openapi.json"' in response.text


async def test_keys_are_described_where_they_are_asked_for(models: Path, client: AsyncClient) -> None:
    assert "securitySchemes" not in (await describe(client))["components"]
    keys: dict[str, Any] = {"api_keys": SecretStr("k" * 16), "admin_keys": SecretStr("a" * 16)}
    schema = create_app(Settings(models=models, **keys)).openapi()
    assert set(schema["components"]["securitySchemes"]) == {"bearer", "apiKey"}
    infer, health = schema["paths"]["/infer"]["post"], schema["paths"]["/livez"]["get"]
    assert "401" in infer["responses"]
    assert "admin" not in infer["responses"]["403"]["description"]
    assert infer["security"] == [{"bearer": []}, {"apiKey": []}]
    assert not {"401", "403"} & set(health["responses"])
    logging = schema["paths"]["/v2/logging"]["post"]["responses"]
    assert "401" in logging
    assert "admin" in logging["403"]["description"]


async def test_large_models_have_commands_but_no_page_of_numbers(tmp_path: Path) -> None:
    lines = "pnnx.Input in 0 1 0 #0=(1,3,224,224)f32\nnn.ReLU relu 1 1 0 1\npnnx.Output out 1 0 1"
    add_model(tmp_path, "photo", lines, "[image]\n")
    examples = examples_for(load_repository(Settings(models=tmp_path)))
    assert "application/x-npy" not in examples
    assert "value" not in examples["image/bmp"]["photo-image"]
    assert "@image.bmp" in examples["image/bmp"]["photo-image"]["description"]
    assert "externalValue" in examples["image/png"]["photo-image"]


async def test_no_example_is_given_that_would_not_run(tmp_path: Path) -> None:
    lines = """
        pnnx.Input   in   0 1 0 #0=(1,1,?,?)f32
        nn.MaxPool2d pool 1 1 0 1 ceil_mode=False dilation=(1,1) kernel_size=(2,2) padding=(0,0) \\
            return_indices=False stride=(2,2)
        pnnx.Output  out  1 0 1"""
    add_model(tmp_path, "pool", lines.replace("\\\n", " "))
    assert examples_for(load_repository(Settings(models=tmp_path))) == {}


async def test_examples_are_made_once(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    first = app.openapi()
    monkeypatch.setattr("service.description.openapi.examples_for", None)
    assert app.openapi() is first


async def test_calls_of_the_protocol_name_models_and_versions_in_their_paths_alone(
    client: AsyncClient,
) -> None:
    """A version in the query would be described, and let pass unheard."""
    paths = (await describe(client))["paths"]
    assert {"name", "version"} == parameter_names(paths["/v2/models/{name}/versions/{version}/infer"], "path")
    for path, operations in paths.items():
        if path.startswith("/v2"):
            assert not parameter_names(operations, "query"), path


def parameter_names(operations: dict[str, Any], place: str) -> set[str]:
    parameters = [one for operation in operations.values() for one in operation.get("parameters", [])]
    return {parameter["name"] for parameter in parameters if parameter["in"] == place}


async def test_no_two_schemas_share_a_name(client: AsyncClient) -> None:
    names = (await describe(client))["components"]["schemas"]
    assert not [name for name in names if "__" in name], (
        "pydantic puts the module before names that it has twice"
    )


async def test_the_page_shows_code_without_its_marks(client: AsyncClient) -> None:
    assert "`" not in (await client.get("/docs")).text
