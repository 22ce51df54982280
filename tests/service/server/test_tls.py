"""HTTPS, with certificates made for the test."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from pydantic import SecretStr

from service.config.setting_file import SettingsError
from service.config.settings import Settings
from service.server.tls import check_tls, tls_options
from tests.service.models import VECTOR, add_model
from tests.service.server.process import SOON, ServerProcess, run_to_end

PASSWORD = "a password"


@dataclass(frozen=True)
class Files:
    """PEM files of an authority, and of a server on 127.0.0.1 and a client that it vouches for."""

    authority: Path
    server: Path
    key: Path
    locked_key: Path
    both: Path
    client: Path
    other_key: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    root = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    server, client = authority.issue_cert("127.0.0.1"), authority.issue_cert("client@example.org")
    made = Files(*(root / name for name in ("ca", "server", "key", "locked", "both", "client", "other")))
    authority.cert_pem.write_to_path(made.authority)
    server.cert_chain_pems[0].write_to_path(made.server)
    server.private_key_pem.write_to_path(made.key)
    server.private_key_and_cert_chain_pem.write_to_path(made.both)
    client.private_key_and_cert_chain_pem.write_to_path(made.client)
    client.private_key_pem.write_to_path(made.other_key)
    made.locked_key.write_bytes(lock(made.key.read_bytes()))
    return made


def lock(key: bytes) -> bytes:
    """Encrypt a private key with the password."""
    from cryptography.hazmat.primitives import serialization

    loaded = serialization.load_pem_private_key(key, None)
    how = serialization.BestAvailableEncryption(PASSWORD.encode())
    kind = serialization.PrivateFormat.PKCS8
    return loaded.private_bytes(serialization.Encoding.PEM, kind, how)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return add_model(tmp_path_factory.mktemp("models"), "vector", VECTOR)


def trusting(files: Files) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.authority))


def test_server_speaks_https(files: Files, models: Path) -> None:
    flags = ("--ssl-certfile", str(files.server), "--ssl-keyfile", str(files.key))
    with ServerProcess("--models", str(models), *flags) as server:
        assert server.url.startswith("https://")
        body = {"inputs": [{"data": [[-1, 0, 1]]}]}
        response = httpx.post(f"{server.url}/infer", json=body, verify=trusting(files), timeout=SOON)
        assert response.status_code == 200
        assert response.json()["outputs"][0]["data"] == [[0, 0, 1]]
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{server.url}/livez", timeout=SOON)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{server.url.replace('https', 'http')}/livez", timeout=SOON)
        server.terminate()
        assert server.exit_code() == 0


def test_clients_can_be_asked_for_certificates(files: Files, models: Path) -> None:
    flags = ("--ssl-certfile", str(files.both), "--ssl-ca-certs", str(files.authority))
    with ServerProcess("--models", str(models), *flags) as server:
        context = trusting(files)
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{server.url}/livez", verify=context, timeout=SOON)
        context.load_cert_chain(files.client)
        assert httpx.get(f"{server.url}/livez", verify=context, timeout=SOON).status_code == 200


def test_old_ciphers_are_not_spoken(files: Files, models: Path) -> None:
    flags = ("--ssl-certfile", str(files.both))
    with ServerProcess("--models", str(models), *flags) as server:
        for version, ciphers, status in (
            (ssl.TLSVersion.TLSv1_3, "DEFAULT", 200),
            (ssl.TLSVersion.TLSv1_2, "ECDHE+AESGCM", 200),
            (ssl.TLSVersion.TLSv1_2, "ECDHE+CHACHA20", 200),
            (ssl.TLSVersion.TLSv1_2, "ECDHE+AES:!AESGCM:!AESCCM", None),  # AES-CBC
        ):
            context = trusting(files)
            context.minimum_version = context.maximum_version = version
            context.set_ciphers(ciphers)
            if status is None:
                with pytest.raises(httpx.ConnectError, match=r"(?i)handshake.failure|EOF"):
                    httpx.get(f"{server.url}/livez", verify=context, timeout=SOON)
            else:
                assert httpx.get(f"{server.url}/livez", verify=context, timeout=SOON).status_code == status


def test_bad_certificate_ends_the_start_with_one_line(files: Files, models: Path) -> None:
    ended = run_to_end("--models", str(models), "--ssl-certfile", str(files.server), "--ssl-keyfile", "none")
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == ["kuiper: ssl_keyfile: cannot read none: No such file or directory"]


def test_without_certificate_there_is_no_https() -> None:
    check_tls(Settings())
    assert tls_options(Settings()) == {}


def test_sound_files_are_taken(files: Files) -> None:
    check_tls(Settings(ssl_certfile=files.both, ssl_ca_certs=files.authority))
    locked: dict[str, Any] = {"ssl_certfile": files.server, "ssl_keyfile": files.locked_key}
    settings = Settings(**locked, ssl_keyfile_password=SecretStr(PASSWORD))
    check_tls(settings)
    assert PASSWORD not in repr(settings)
    assert tls_options(settings)["ssl_keyfile_password"] == PASSWORD


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"ssl_keyfile": "key"}, "ssl_keyfile: requires ssl_certfile"),
        ({"ssl_ca_certs": "authority"}, "ssl_ca_certs: requires ssl_certfile"),
        ({"ssl_certfile": "none"}, "ssl_certfile: cannot read .*: No such file"),
        ({"ssl_certfile": "server"}, "ssl_certfile: .* not a PEM certificate and its private key"),
        ({"ssl_certfile": "key"}, "ssl_certfile: .* not a PEM certificate and its private key"),
        (
            {"ssl_certfile": "server", "ssl_keyfile": "authority"},
            "ssl_certfile: .* not a PEM certificate and its private",
        ),
        (
            {"ssl_certfile": "server", "ssl_keyfile": "other_key"},
            "ssl_keyfile: the key in .* is not that of the",
        ),
        (
            {"ssl_certfile": "server", "ssl_keyfile": "locked_key"},
            "ssl_keyfile_password: is needed by the key in",
        ),
        ({"ssl_certfile": "both", "ssl_ca_certs": "key"}, "ssl_ca_certs: .* holds no PEM certificates"),
    ],
)
def test_bad_files_are_named(files: Files, given: dict[str, str], message: str) -> None:
    paths: dict[str, Any] = {name: getattr(files, file, Path("none")) for name, file in given.items()}
    with pytest.raises(SettingsError, match=message):
        check_tls(Settings(**paths))


def test_wrong_password_is_named_and_not_shown(files: Files) -> None:
    locked: dict[str, Any] = {"ssl_certfile": files.server, "ssl_keyfile": files.locked_key}
    with pytest.raises(SettingsError, match="ssl_keyfile_password: is not that of the key") as refused:
        check_tls(Settings(**locked, ssl_keyfile_password=SecretStr("a wrong word")))
    assert "wrong" not in str(refused.value)
