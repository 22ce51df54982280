"""Files that come with a model: those of its folder, and no others."""

import os
from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from service.config.settings import Settings
from tests.service.conftest import serving
from tests.service.models import VECTOR, add_model, add_versions

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[AsyncClient]:
    folder = tmp_path_factory.mktemp("samples")
    (folder / "secret.png").write_bytes(b"secret")
    root = folder / "models"
    samples = add_model(root, "vector", VECTOR) / "samples"
    samples.mkdir()
    (samples / "b.PNG").write_bytes(b"<html>")
    (samples / "a.json").write_bytes(b"[1]")
    (samples / "notes.md").write_text("no sample")
    (samples / "folder.png").mkdir()
    (samples / os.fsdecode(b"\xff.png")).write_bytes(b"its name is not UTF-8")
    (samples / "link.png").symlink_to(folder / "secret.png")
    shared = add_versions(root, "versions", {"1": VECTOR, "2": VECTOR}) / "samples"
    shared.mkdir()
    (shared / "of-all.npy").write_bytes(b"1")
    own = root / "versions/2/samples"
    own.mkdir()
    (own / "of-two.npy").write_bytes(b"2")
    add_model(root, "bare", VECTOR)
    async with serving(Settings(models=root, workers=1)) as made:
        yield made


async def names(client: AsyncClient, path: str) -> list[str]:
    return [sample["name"] for sample in (await client.get(path)).json()["samples"]]


async def test_samples_are_the_files_of_the_folder(client: AsyncClient) -> None:
    assert (await client.get("/models/vector/samples")).json() == {
        "samples": [
            {"name": "a.json", "media_type": "application/json", "bytes": 3},
            {"name": "b.PNG", "media_type": "image/png", "bytes": 6},
        ]
    }
    assert await names(client, "/models/bare/samples") == []


async def test_versions_have_their_own_or_those_of_the_model(client: AsyncClient) -> None:
    assert await names(client, "/models/versions/samples") == ["of-two.npy"]
    assert await names(client, "/models/versions/samples?version=1") == ["of-all.npy"]


async def test_a_sample_is_sent_as_what_it_is_and_runs_nothing(client: AsyncClient) -> None:
    response = await client.get("/models/vector/samples/b.PNG")
    assert (response.content, response.headers["content-type"]) == (b"<html>", "image/png")
    assert "sandbox" in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    again = await client.get(
        "/models/vector/samples/b.PNG", headers={"If-None-Match": response.headers["etag"]}
    )
    assert again.status_code == 304


@pytest.mark.parametrize(
    "name", ["link.png", "folder.png", "notes.md", "none.png", "%2e%2e%2fvector.param", "%2e%2e"]
)
async def test_nothing_else_is_sent(client: AsyncClient, name: str) -> None:
    response = await client.get(f"/models/vector/samples/{name}")
    assert response.status_code == 404
    assert response.json()["code"] in {"sample_not_found", "not_found"}
