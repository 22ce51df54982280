import pytest
from httpx import AsyncClient

pytestmark = pytest.mark.anyio


async def test_index_leads_to_everything(client: AsyncClient) -> None:
    index = (await client.get("/")).json()
    assert index["name"] == "Kuiper Serve"
    assert index["models"] == ["digit", "pair", "vector"]
    for path in index["endpoints"]:
        assert (await client.get(path)).status_code != 404
