"""Keys, on a real server: what arrives and what does not, what is logged, and that keys can be exchanged."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.service.models import VECTOR, add_model
from tests.service.server.process import SOON, ServerProcess, run_to_end

OLD, NEW = "old-0123456789abcdef", "new-0123456789abcdef"
BODY = {"inputs": [{"data": [[-1, 0, 1]]}]}


def write_flags(folder: Path) -> tuple[str, ...]:
    """Write a model and a file of keys, and return the flags that name them."""
    add_model(folder / "models", "vector", VECTOR)
    (folder / "keys").write_text(f"{OLD}  # of last year\n")
    return "--models", str(folder / "models"), "--api-keys-file", str(folder / "keys")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(*write_flags(tmp_path_factory.mktemp("keyed"))) as started:
        yield started


def ask(server: ServerProcess, key: str) -> int:
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.post(f"{server.url}/infer", json=BODY, headers=headers, timeout=SOON).status_code


def test_keys_are_exchanged_while_the_server_runs(tmp_path: Path) -> None:
    with ServerProcess(*write_flags(tmp_path), "--log-level", "debug") as server:
        assert (ask(server, OLD), ask(server, NEW)) == (200, 401)
        draft = tmp_path / "draft"
        draft.write_text(f"{OLD}\n{NEW}\n")
        draft.replace(tmp_path / "keys")
        responses = iter(lambda: ask(server, NEW), 200)  # the file is looked at once a second
        assert set(responses) <= {401}
        assert ask(server, OLD) == 200
        assert httpx.get(f"{server.url}/readyz", timeout=SOON).status_code == 200
        server.terminate()
        assert server.exit_code() == 0
    assert not re.search("0123456789abcdef", "\n".join(server.lines))


def test_refused_client_that_sends_a_large_body_sees_why(server: ServerProcess) -> None:
    response = httpx.post(f"{server.url}/infer", content=bytes(32 << 20), timeout=SOON)
    assert (response.status_code, response.json()["code"]) == (401, "key_needed")
    assert response.headers["connection"] == "close"


def test_client_that_waits_to_send_its_body_is_refused_before(server: ServerProcess) -> None:
    port = urlsplit(server.url).port
    assert port is not None
    head = b"POST /infer HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\nX-Request-ID: r7\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), SOON) as connection:
        connection.sendall(head)
        response = connection.recv(65536)
    assert response.startswith(b"HTTP/1.1 401 ")
    assert b"\r\nx-request-id: r7\r\n" in response


def test_file_without_keys_ends_the_start_with_one_line(tmp_path: Path) -> None:
    flags = write_flags(tmp_path)
    (tmp_path / "keys").write_text("# none\n")
    ended = run_to_end(*flags)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [f"kuiper: api_keys_file: {tmp_path / 'keys'} holds no key"]


def test_head_has_no_body(server: ServerProcess) -> None:
    port = urlsplit(server.url).port
    assert port is not None
    lines = b"HEAD /%s HTTP/1.1\r\nHost: t\r\n%s\r\n"
    with socket.create_connection(("127.0.0.1", port), SOON) as connection:
        connection.sendall(
            lines % (b"livez", b"") + lines % (b"", b"") + lines % (b"readyz", b"Connection: close\r\n")
        )
        response = connection.makefile("rb").read()
    assert re.findall(rb"HTTP/1.1 (\d+)", response) == [b"200", b"401", b"200"]
    assert response.count(b"content-length: ") == 3
    assert b"{" not in response
