import logging

import pytest

from service.commands import serve
from service.commands.dispatch import run_command
from service.config.environment import doubtful_variables
from service.config.settings import load_settings

SERVICE_LINKS = [
    "KUIPER_SERVICE_HOST",
    "KUIPER_SERVICE_PORT",
    "KUIPER_SERVICE_PORT_HTTP",
    "KUIPER_PORT_8000_TCP",
    "KUIPER_PORT_8000_TCP_PROTO",
    "KUIPER_PORT_8000_TCP_PORT",
    "KUIPER_PORT_8000_TCP_ADDR",
    "KUIPER_METRICS_PORT",
    "KUIPER_METRICS_SERVICE_HOST",
]


def test_settings_and_other_variables_are_fine() -> None:
    assert not [
        *doubtful_variables({"KUIPER_PORT": "1", "kuiper_workers": "2", "PATH": "/bin", "KUIPERX": "1"})
    ]


def test_mistyped_variables_are_named_with_the_nearest() -> None:
    doubts = [*doubtful_variables({"KUIPER_WROKERS": "secret", "KUIPER_XYZZY": "1"})]
    assert doubts == [
        "KUIPER_WROKERS is ignored: there is no setting wrokers; did you mean workers?",
        "KUIPER_XYZZY is ignored: there is no setting xyzzy",
    ]


def test_variables_of_kubernetes_services_are_expected() -> None:
    assert not [*doubtful_variables(dict.fromkeys(SERVICE_LINKS, "10.0.0.1"))]


def test_port_of_a_kubernetes_service_is_not_ours(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KUIPER_PORT", "tcp://10.0.0.1:80")
    monkeypatch.setenv("KUIPER_SSL_CERTFIEL", "x")
    assert load_settings().port == 8000
    assert load_settings({"port": "7"}).port == 7
    monkeypatch.setattr(serve, "run_server", lambda app, settings: 0)
    monkeypatch.setattr(serve, "configure_logging", lambda *_: None)
    with caplog.at_level(logging.WARNING):
        assert run_command(["serve"]) == 0
    assert [record.getMessage() for record in caplog.records] == [
        "KUIPER_PORT is ignored: its value is that of a Kubernetes service link, not a port",
        "KUIPER_SSL_CERTFIEL is ignored: there is no setting ssl_certfiel; did you mean ssl_certfile?",
    ]
