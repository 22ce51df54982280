"""The settings in force, without secrets."""

from pathlib import Path

import pytest
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.config.fitting import fit_to_memory
from service.config.settings import Settings, load_settings

pytestmark = pytest.mark.anyio

KEY = "0123456789abcdef0123"


async def test_each_setting_shows_where_it_comes_from(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kuiper.toml"
    file.write_text(f"queue_size = 7\ntimeout = 5.5\napi_keys = '{KEY}'\n")
    monkeypatch.setenv("KUIPER_TIMEOUT", "6.5")
    monkeypatch.setenv("KUIPER_ADMIN_KEYS", KEY[::-1])
    monkeypatch.setenv("KUIPER_PORT", "tcp://10.0.0.1:80")  # Kubernetes sets it, and it is no setting
    loaded = load_settings({"models": str(models), "config": str(file), "port": "0"})
    app = create_app(fit_to_memory(loaded, 1 << 30))
    async with (
        app.router.lifespan_context(app),
        AsyncClient(transport=ASGITransport(app), base_url="http://test") as client,
    ):
        assert (await client.get("/settings")).status_code == 401
        response = await client.get("/settings", headers={"X-API-Key": KEY})
    assert KEY not in response.text
    assert KEY[::-1] not in response.text
    shown = {setting["name"]: setting for setting in response.json()["settings"]}
    assert set(shown) == set(Settings.model_fields)
    assert {name: (shown[name]["value"], shown[name]["origin"]) for name in ("models", "port", "host")} == {
        "models": (str(models), "flag"),
        "port": (0, "flag"),
        "host": ("127.0.0.1", "default"),
    }
    assert (shown["timeout"]["value"], shown["timeout"]["origin"]) == (6.5, "environment")
    assert (shown["queue_size"]["value"], shown["queue_size"]["origin"]) == (7, "file")
    assert shown["max_body_bytes"]["origin"] == "machine"
    assert shown["cors_origins"]["value"] == []
    for name, origin in (("api_keys", "file"), ("admin_keys", "environment")):
        assert (shown[name]["value"], shown[name]["secret"], shown[name]["origin"]) == (None, True, origin)
    assert all(setting["help"] for setting in shown.values())
