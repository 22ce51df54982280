"""Which `Host` headers are answered."""

import socket
from typing import Any

import pytest

from service.http.hosts import AllowedHosts, is_loopback

HERE = ("127.0.0.1", 8000)
SITES = [
    b"evil.example",
    b"evil.example:8000",
    b"localhost.evil.example",
    b"127.0.0.1.evil.example:8000",
    b"evil.example:localhost",
    b"localhost:8000:x",
    b"localhost@evil.example",
    b"[evil.example]",
    b"evil.",
    b":8000",
    b".:8000",
    b"\xff.\xfe",
]


def status(hosts: AllowedHosts, host: bytes | None, server: tuple[str, int | None] | None = HERE) -> int:
    refused = hosts.refusal(host, server)
    return 200 if refused is None else refused.status


@pytest.mark.parametrize("listens_on", ["127.0.0.1", "localhost", "127.1.2.3", "::1"])
def test_on_loopback_only_its_own_names_are_answered(listens_on: str) -> None:
    hosts = AllowedHosts(listens_on, ())
    for own in (b"127.0.0.1:8000", b"localhost", b"LocalHost:9", b"[::1]:8000", b"[::1]", b"127.3.2.1"):
        assert status(hosts, own) == 200
    for site in (*SITES, b"192.168.0.5:8000", b"0.0.0.0:8000"):
        assert status(hosts, site) == 421, site


@pytest.mark.parametrize("name", [b"kuiper:8000", b"gpu-box", b"T", b""])
def test_name_without_a_dot_is_no_site(name: bytes) -> None:
    assert status(AllowedHosts("127.0.0.1", ()), name) == 200


def test_refusal_names_the_host_and_the_setting() -> None:
    refused = AllowedHosts("127.0.0.1", ()).refusal(b"Evil.example:80", HERE)
    assert refused is not None
    assert refused.code == "host_refused"
    assert "'evil.example'" in refused.message
    assert refused.details == {"host": "evil.example", "setting": "allowed_hosts"}


def test_long_host_is_shown_in_part() -> None:
    refused = AllowedHosts("127.0.0.1", ()).refusal(b"x." * 30_000, HERE)
    assert refused is not None
    assert len(str(refused.body())) < 500


def test_client_without_host_is_no_browser() -> None:
    assert status(AllowedHosts("127.0.0.1", ()), None) == 200


def test_setting_widens_what_is_answered_on_loopback() -> None:
    hosts = AllowedHosts("127.0.0.1", ("models.example.org", "10.0.0.7"))
    for host in (b"models.example.org:443", b"MODELS.example.org", b"localhost", b"10.0.0.7:8000"):
        assert status(hosts, host) == 200
    for host in (b"example.org", b"10.0.0.8", b"evil.example"):
        assert status(hosts, host) == 421


@pytest.mark.parametrize("listens_on", ["0.0.0.0", "::", "", "192.168.0.5"])
def test_elsewhere_every_host_is_answered_until_some_are_set(listens_on: str) -> None:
    for site in SITES:
        assert status(AllowedHosts(listens_on, ()), site, ("192.168.0.5", 80)) == 200
    hosts = AllowedHosts(listens_on, ("models.example.org",))
    for host in (b"models.example.org", b"10.1.2.3:8000", b"[fd00::5]:8000", b"localhost:8000", b"127.0.0.1"):
        assert status(hosts, host, ("192.168.0.5", 80)) == 200
    for site in SITES:
        assert status(hosts, site, ("192.168.0.5", 80)) == 421


def test_star_allows_all() -> None:
    assert status(AllowedHosts("127.0.0.1", ("*",)), b"evil.example") == 200


@pytest.mark.parametrize("server", [("192.168.0.5", 80), ("test", None), ("/run/kuiper.sock", None), None])
def test_application_that_another_server_runs_checks_what_comes_by_loopback(server: Any) -> None:
    hosts = AllowedHosts("127.0.0.1", ())
    assert status(hosts, b"models.example.org", server) == 200
    assert status(hosts, b"models.example.org", ("127.0.0.1", 9)) == 421
    assert status(hosts, b"models.example.org", ("::1", 9)) == 421


def test_what_is_remembered_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.http.hosts._MAX_KNOWN", 3)
    hosts = AllowedHosts("127.0.0.1", ())
    for port in range(10):
        assert status(hosts, b"localhost:%d" % port) == 200
        assert status(hosts, b"evil.example:%d" % port) == 421
    assert len(hosts.known) == 3


def test_long_names_are_not_remembered() -> None:
    hosts = AllowedHosts("127.0.0.1", ())
    assert status(hosts, b"x" * 60_000) == 200
    assert not hosts.known


def test_name_that_resolves_to_loopback_is_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[str, list[str]] = {"here": ["127.0.1.1", "::1"], "both": ["127.0.1.1", "10.0.0.1"]}

    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        if host not in found:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(0, 0, 0, "", (address, 0)) for address in found[host]]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert [is_loopback(host) for host in ("here", "both", "nowhere")] == [True, False, False]
    assert status(AllowedHosts("here", ()), b"here:8000") == 200
