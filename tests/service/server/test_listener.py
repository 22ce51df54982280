"""Where the server listens, and what it says if it cannot."""

import socket
from contextlib import ExitStack

import pytest

from service.errors import ListenError
from service.server.listener import listen, url_of


def test_address_is_listened_on_at_once() -> None:
    (listening,) = listen("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname()) as client:
        assert client.getpeername() == listening.getsockname()
        assert (
            url_of(listening, "127.0.0.1", is_secure=False) == f"http://127.0.0.1:{client.getpeername()[1]}"
        )


def test_name_of_several_addresses_has_one_port(monkeypatch: pytest.MonkeyPatch) -> None:
    names_of(monkeypatch, "127.0.0.1", "127.0.0.2", "203.0.113.7")  # the last is no address of this machine
    with ExitStack() as stack:
        opened = [stack.enter_context(listening) for listening in listen("several", 0)]
        names, ports = zip(*(listening.getsockname() for listening in opened), strict=True)
    assert names == ("127.0.0.1", "127.0.0.2")
    assert len(set(ports)) == 1


def test_port_in_use_names_the_flag_and_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    names_of(monkeypatch, "127.0.0.2", "127.0.0.1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=rf"^several:{port}: address already in use; .* with --port,"):
            listen("several", port)
    for opened in listen("127.0.0.2", port):  # closed above, else a warning would fail this test
        opened.close()


@pytest.mark.parametrize("host", ["203.0.113.7", "nowhere.invalid"])
def test_address_of_another_machine_names_the_flag(host: str) -> None:
    with pytest.raises(ListenError, match=rf"^{host}:0: .*; --host names an address of this machine$"):
        listen(host, 0)


def test_url_shows_what_a_browser_takes() -> None:
    (listening,) = listen("127.0.0.1", 0)
    with listening:
        port = listening.getsockname()[1]
        assert url_of(listening, "::1", is_secure=True) == f"https://[::1]:{port}"
        assert url_of(listening, "", is_secure=False) == f"http://0.0.0.0:{port}"


def names_of(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Have a name stand for several addresses."""

    def found(host: str, port: int, **rest: object) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", found)
