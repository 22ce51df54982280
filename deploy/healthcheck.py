"""The image's health check: exits with 0 if the server of this container is ready, with 1 and a reason if it is not.

Docker runs it without an argument. The Helm chart names a path, `/livez` or `/readyz`, where a probe of Kubernetes
would have no certificate to show.

The address, and whether it speaks HTTPS, are read from the environment and the settings file, as the server reads them;
what flags set is not seen here. It imports nothing of the server, which would take a second of CPU for each check.
"""

import os
import ssl
import sys
import tomllib
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any

PREFIX = "KUIPER_"
SECONDS = 2.0
"""Maximum response time of the server in seconds."""
_ANY = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}  # noqa: S104  # where to ask a server that listens there
_SERVICE_LINK = ("tcp://", "udp://", "sctp://")
"""What the value of a variable begins with that Kubernetes sets for a service of the name kuiper."""


def read_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of the environment and of the file that it names, by their names in snake case."""
    variables = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environment.items()
        if name.startswith(PREFIX) and value and not value.startswith(_SERVICE_LINK)
    }
    path = variables.get("config")
    filed = tomllib.loads(Path(path).read_text(encoding="utf-8")) if path else {}
    return filed | variables


def connect(settings: Mapping[str, Any]) -> HTTPConnection:
    """Return a connection to the server."""
    host = str(settings.get("host", "127.0.0.1"))
    host, port, context = _ANY.get(host, host), int(settings.get("port", 8000)), tls_context(settings)
    if context is None:
        return HTTPConnection(host, port, timeout=SECONDS)
    return HTTPSConnection(host, port, timeout=SECONDS, context=context)


def tls_context(settings: Mapping[str, Any]) -> ssl.SSLContext | None:
    """Return how to speak HTTPS with a server in the same container; None where it speaks HTTP.

    Its certificate is for another name than the one that is asked here, so it is not checked. Where the server asks its
    clients for certificates, its own is shown, which is taken if one of the same authorities signed it.
    """
    certificate = settings.get("ssl_certfile")
    if not certificate:
        return None
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if settings.get("ssl_ca_certs"):
        password = settings.get("ssl_keyfile_password")
        context.load_cert_chain(certificate, settings.get("ssl_keyfile"), password or "")
    return context


def main(path: str = "/readyz") -> int:
    """Ask for a path once; returns the exit code."""
    try:
        connection = connect(read_settings(os.environ))
        connection.request("GET", path)
        status = connection.getresponse().status
    except (OSError, ValueError, HTTPException) as error:
        print(error, file=sys.stderr)
        return 1
    if status != HTTPStatus.OK:
        print(f"{path}: status {status}", file=sys.stderr)
    return 0 if status == HTTPStatus.OK else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
