"""The health check of the image, asked of servers with and without HTTPS."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme
import yaml

from service.config.settings import Settings
from tests.service.models import VECTOR, add_model
from tests.service.server.process import SOON, ServerProcess

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "deploy/healthcheck.py"


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(add_model(tmp_path / "models", "vector", VECTOR))


def check(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    outside = {name: value for name, value in os.environ.items() if not name.startswith("KUIPER_")}
    given = {f"KUIPER_{name.upper()}": value for name, value in variables.items()}
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(
        command, env=outside | given, capture_output=True, text=True, timeout=SOON, check=False
    )


def port_of(server: ServerProcess) -> str:
    return str(urlsplit(server.url).port)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_server_is_healthy_until_it_has_ended(model: str, host: str) -> None:
    with ServerProcess("--models", model, "--host", host) as server:
        port = port_of(server)
        assert check(port=port, host=host).returncode == 0
        assert check("/livez", port=port, host=host).returncode == 0
        missing = check("/nowhere", port=port, host=host)
        assert (missing.returncode, missing.stderr) == (1, "/nowhere: status 404\n")
        assert check(port=port, host=host, ssl_certfile="x").returncode == 1
        server.terminate()
        server.exit_code()
        ended = check(port=port, host=host)
    assert ended.returncode == 1
    assert "refused" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_https_is_asked_by_https_and_with_a_certificate_where_one_is_wanted(
    model: str, tmp_path: Path
) -> None:
    authority = trustme.CA()
    both, trusted = tmp_path / "both.pem", tmp_path / "ca.pem"
    authority.issue_cert("models.example.org").private_key_and_cert_chain_pem.write_to_path(both)
    authority.cert_pem.write_to_path(trusted)
    with ServerProcess("--models", model, "--ssl-certfile", str(both)) as server:
        assert check(port=port_of(server), ssl_certfile=str(both)).returncode == 0
        assert check(port=port_of(server)).returncode == 1
    flags = ("--ssl-certfile", str(both), "--ssl-ca-certs", str(trusted))
    with ServerProcess("--models", model, *flags) as server:
        port = port_of(server)
        assert check(port=port, ssl_certfile=str(both)).returncode == 1
        assert check(port=port, ssl_certfile=str(both), ssl_ca_certs=str(trusted)).returncode == 0
        settings = tmp_path / "kuiper.toml"
        settings.write_text(f'port = {port}\nssl_certfile = "{both}"\nssl_ca_certs = "{trusted}"\n')
        assert check(config=str(settings)).returncode == 0
        assert check(config=str(settings), port="tcp://10.0.0.1:80").returncode == 0


@pytest.mark.parametrize(
    "variables", [{"port": "x"}, {"config": "nowhere.toml"}, {"ssl_certfile": "x", "ssl_ca_certs": "x"}]
)
def test_settings_that_cannot_be_are_one_line(variables: dict[str, str]) -> None:
    ended = check(**variables)
    assert ended.returncode == 1
    assert len(ended.stderr.splitlines()) == 1


def test_image_and_compose_file_use_it() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    (target,) = [
        line.split()[2] for line in dockerfile.splitlines() if line.startswith(f"COPY deploy/{SCRIPT.name}")
    ]
    assert f'CMD ["python", "{target}"]' in dockerfile
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    assert "healthcheck" not in compose["services"]["kuiper"]  # it would take the place of the image's own


@pytest.mark.parametrize("name", ["docker-compose.yml", "docker-compose.keys.yml"])
def test_compose_files_set_what_there_is(name: str) -> None:
    compose = yaml.safe_load((ROOT / name).read_text())
    service = compose["services"]["kuiper"]
    for variable in service["environment"]:
        assert variable.removeprefix("KUIPER_").lower() in Settings.model_fields
    mounted = {f"/run/secrets/{secret}" for secret in service.get("secrets", ())}
    named = {value for variable, value in service["environment"].items() if variable.endswith("_FILE")}
    assert named == mounted
    assert set(service.get("secrets", ())) == set(compose.get("secrets", ()))
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert not compose.get("secrets") or "/secrets/" in ignored
