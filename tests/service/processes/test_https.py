"""Several processes that speak HTTPS: connections that come together, and a new certificate."""

import os
import re
import signal
import ssl
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from tests.service.models import VECTOR, add_model
from tests.service.processes.load import Load
from tests.service.server.process import ServerProcess

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="several processes need a POSIX system"),
]
RESTARTED = re.compile("restarted: 2 processes were replaced")


def write_certificate(authority: trustme.CA, file: Path) -> str:
    """Write a new key and certificate, and return the certificate."""
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(file)
    return issued.cert_chain_pems[0].bytes().decode()


def test_restart_takes_a_new_certificate_and_fails_nothing(tmp_path: Path) -> None:
    models = add_model(tmp_path / "models", "vector", VECTOR)
    authority, file = trustme.CA(), tmp_path / "server.pem"
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    old = write_certificate(authority, file)
    flags = ("--models", str(models), "--processes", "2", "--ssl-certfile", str(file))
    with ServerProcess(*flags) as server:
        address = urlsplit(server.url)
        at = (address.hostname or "", address.port or 0)
        assert ssl.get_server_certificate(at).split() == old.split()
        with Load(server.url, clients=8, tls=trusting) as load:
            load.until_answered(20)
            new = write_certificate(authority, file)
            server.process.send_signal(signal.SIGHUP)
            server.wait_for_line(RESTARTED)
            load.until_answered(20)
        assert (load.responses, load.broken) == ({200: load.responses.total()}, [])
        assert ssl.get_server_certificate(at).split() == new.split()
