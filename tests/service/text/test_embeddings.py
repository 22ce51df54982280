"""Vectors of texts over HTTP: at `/infer`, and as OpenAI's clients ask for them."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from httpx import AsyncClient
from pydantic import ValidationError

from service.config.settings import Settings
from service.infer.embedding_exchange import EmbeddingRequest
from tests.service.text.models import VECTORS, add_text_model, ids_of, mean_of

pytestmark = pytest.mark.anyio
EMBEDDING = 'task = "text-embedding"\n[text]\nmax_length = 6\n'
TEXTS = ["red cat", "green", "blue blue red cat", ""]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    add_text_model(root / "mean", EMBEDDING)
    add_text_model(root / "first", EMBEDDING + '[text-embedding]\npooling = "cls"\nnormalize = false\n')
    add_text_model(root / "fixed", EMBEDDING, length="4", batch="1")
    add_text_model(root / "maskless", EMBEDDING, has_mask=False)
    add_text_model(root / "plain", EMBEDDING, adds_tokens=False)
    add_text_model(root / "raw", "")
    return root


@pytest.fixture(scope="module")
def settings(models: Path) -> Settings:
    return Settings(models=models, workers=1, timeout=20, max_body_bytes=3_000_000, backend="numpy")


async def ask(client: AsyncClient, model: str, body: dict[str, Any]) -> list[np.ndarray]:
    response = await client.post(f"/infer?model={model}", json=body)
    assert response.status_code == 200, response.text
    return [np.array(item[0]["embedding"]) for item in response.json()["predictions"]]


async def test_vectors_are_means_over_the_tokens_of_each_text(client: AsyncClient) -> None:
    vectors = await ask(client, "mean", {"texts": TEXTS})
    for text, vector in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, mean_of(text), rtol=1e-5)


async def test_one_text_is_as_among_others(client: AsyncClient) -> None:
    for text in TEXTS:
        np.testing.assert_allclose((await ask(client, "mean", {"text": text}))[0], mean_of(text), rtol=1e-5)


async def test_a_body_of_text_is_one_text(client: AsyncClient) -> None:
    response = await client.post(
        "/infer?model=mean", content="red\ncat", headers={"Content-Type": "text/plain; charset=utf-8"}
    )
    (prediction,) = response.json()["predictions"][0]
    np.testing.assert_allclose(prediction["embedding"], mean_of("red cat"), rtol=1e-5)
    assert prediction["tokens"] == 4


async def test_bytes_that_are_no_text_are_reported(client: AsyncClient) -> None:
    response = await client.post(
        "/infer?model=mean", content=b"caf\xe9", headers={"Content-Type": "text/plain"}
    )
    assert (response.status_code, response.json()["code"]) == (400, "invalid_text")


async def test_the_first_token_is_another_pooling(client: AsyncClient) -> None:
    vectors = await ask(client, "first", {"texts": ["red", "cat cat"]})
    np.testing.assert_array_equal(np.array(vectors, np.float32), VECTORS[[2, 2]])


async def test_long_texts_are_cut_off(client: AsyncClient) -> None:
    kept = ids_of("red green blue cat")  # six tokens with [CLS] and [SEP]
    mean = VECTORS[kept].astype(np.float64).mean(axis=0)
    (vector,) = await ask(client, "mean", {"text": "red green blue cat red red red"})
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), rtol=1e-5)


async def test_a_text_that_is_cut_off_for_a_short_model_keeps_its_end(client: AsyncClient) -> None:
    (vector,) = await ask(client, "fixed", {"text": "red green blue cat"})
    np.testing.assert_allclose(vector, mean_of("red green"), rtol=1e-5)  # four tokens with [CLS] and [SEP]


async def test_many_texts_without_characters_are_work_as_well(client: AsyncClient) -> None:
    many = await client.post("/infer?model=mean", json={"texts": [""] * 70_000})
    assert (many.status_code, many.json()["code"]) == (413, "text_too_long")
    vectors = await ask(client, "mean", {"texts": ["red"] * 5_000})  # left to a worker of large requests
    np.testing.assert_allclose(vectors[-1], mean_of("red"), rtol=1e-5)


async def test_a_model_of_fixed_length_is_filled_up(client: AsyncClient) -> None:
    np.testing.assert_allclose((await ask(client, "fixed", {"text": "red"}))[0], mean_of("red"), rtol=1e-5)


@pytest.mark.parametrize(
    ("model", "body", "status", "code"),
    [
        ("raw", {"text": "red"}, 422, "not_a_text_model"),
        ("mean", {"texts": []}, 422, "wrong_text_count"),
        ("fixed", {"texts": ["red", "cat"]}, 422, "wrong_text_count"),
        ("plain", {"texts": ["red", ""]}, 422, "empty_text"),
        ("plain", {"text": " "}, 422, "empty_text"),
        ("maskless", {"texts": ["red", "red cat"]}, 422, "unequal_lengths"),
        ("mean", {"text": 3}, 422, "invalid_json"),
        ("mean", {"texts": "red"}, 422, "invalid_json"),
        ("mean", {"text": "red", "texts": ["red"]}, 422, "invalid_json"),
        ("mean", {"text": "a" * (1 << 20) + "b"}, 413, "text_too_long"),
    ],
)
async def test_what_is_no_text_for_the_model_is_reported(
    client: AsyncClient, model: str, body: dict[str, Any], status: int, code: str
) -> None:
    response = await client.post(f"/infer?model={model}", json=body)
    assert response.json()["code"] == code, response.text
    assert response.status_code in (status, 400)


async def test_a_model_without_mask_takes_texts_of_one_length(client: AsyncClient) -> None:
    vectors = await ask(client, "maskless", {"texts": ["red cat", "blue cat"]})
    np.testing.assert_allclose(vectors[1], mean_of("blue cat"), rtol=1e-5)


async def test_openai_clients_get_their_form(client: AsyncClient) -> None:
    response = await client.post(
        "/v1/embeddings", json={"input": ["red cat", "green"], "model": "mean", "user": "me"}
    )
    assert response.status_code == 200, response.text
    body = response.json()
    assert (body["object"], body["model"]) == ("list", "mean")
    assert body["usage"] == {"prompt_tokens": 7, "total_tokens": 7}
    assert [(item["object"], item["index"]) for item in body["data"]] == [("embedding", 0), ("embedding", 1)]
    np.testing.assert_allclose(body["data"][1]["embedding"], mean_of("green"), rtol=1e-5)


async def test_vectors_come_in_base64_as_well(client: AsyncClient) -> None:
    asked = {"input": "red", "model": "mean", "encoding_format": "base64", "dimensions": 5}
    response = await client.post("/v1/embeddings", json=asked)
    vector = np.frombuffer(base64.b64decode(response.json()["data"][0]["embedding"]), "<f4")
    np.testing.assert_allclose(vector, mean_of("red"), rtol=1e-5)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"input": "red", "model": "none"}, 404, "model_not_found"),
        ({"input": "red", "model": "raw"}, 422, "not_a_text_model"),
        ({"input": [[1, 2]], "model": "mean"}, 422, "invalid_parameter"),
        ({"model": "mean"}, 422, "invalid_parameter"),
        ({"input": "red", "model": "mean", "dimensions": 3}, 422, "invalid_parameter"),
        ({"input": [], "model": "mean"}, 422, "wrong_text_count"),
        ([], 422, "invalid_parameter"),
    ],
)
async def test_what_openai_clients_ask_wrongly_is_reported(
    client: AsyncClient, body: Any, status: int, code: str
) -> None:
    response = await client.post("/v1/embeddings", json=body)
    assert (response.status_code, response.json()["code"]) == (status, code), response.text


async def test_of_many_items_that_are_no_texts_the_first_is_reported() -> None:
    with pytest.raises(ValidationError) as caught:
        EmbeddingRequest.model_validate({"input": [1] * 1000})
    assert caught.value.error_count() <= 2  # it is no text, and its first item is none


async def test_a_body_that_is_no_json_is_reported(client: AsyncClient) -> None:
    response = await client.post("/v1/embeddings", content=b'{"input": ')
    assert (response.status_code, response.json()["code"]) == (400, "invalid_json")


async def test_texts_have_examples_that_work(client: AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    content = paths["/infer"]["post"]["requestBody"]["content"]
    text = content["text/plain"]["examples"]["mean-text"]["value"]
    response = await client.post("/infer?model=mean", content=text, headers={"Content-Type": "text/plain"})
    assert response.status_code == 200, response.text
    response = await client.post(
        "/infer?model=mean", json=content["application/json"]["examples"]["mean-texts"]["value"]
    )
    assert response.status_code == 200, response.text
    assert "/v1/embeddings" in paths
