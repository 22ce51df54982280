"""Settings that list origins and hosts."""

import pytest

from service.config.setting_file import SettingsError
from service.config.settings import load_settings


def test_lists_are_separated_by_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUIPER_CORS_ORIGINS", "https://a.example, http://localhost:3000")
    settings = load_settings({"allowed_hosts": "Models.example.org, 10.0.0.7,[FD00::5]"})
    assert settings.cors_origins == ("https://a.example", "http://localhost:3000")
    assert settings.allowed_hosts == ("models.example.org", "10.0.0.7", "fd00::5")


@pytest.mark.parametrize(
    "host", ["https://a.example", "a.example:8000", "a.example/", "", "a b", "*.a.example"]
)
def test_hosts_have_neither_scheme_nor_port(host: str) -> None:
    with pytest.raises(SettingsError, match="allowed_hosts: .* is not a host such as models.example.org"):
        load_settings({"allowed_hosts": f"localhost,{host}"})


@pytest.mark.parametrize("origin", ["a.example", "https://a.example/", "https://a.example/x"])
def test_origins_have_a_scheme_and_no_path(origin: str) -> None:
    with pytest.raises(SettingsError, match="cors_origins: .* is not an origin such as"):
        load_settings({"cors_origins": origin})
