"""Buckets of stores that are servers of this machine: moto for S3, azurite for Azure."""

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, urlencode, urlsplit

import httpx
import pytest

SOON = 120.0
NAME = "bucket"
CLOUDS = ("AWS_", "AZURE_", "GOOGLE_", "GCE_")
"""What the names of variables begin with that lead to a store."""
_SIGNED = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, "
    "Signature=0"
}
"""For what moto lets nobody do without a name; it checks no signature."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


def responses(url: str) -> bool:
    """Return whether a server answers, if only that it does not like the request."""
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc, timeout=SOON)
    try:
        connection.request("GET", address.path or "/")
        return connection.getresponse().status < 500
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


class Bucket(ABC):
    """A bucket, of which objects are noted until its server is started.

    Args:
        folder: for files of its own.

    Attributes:
        scheme: of its URLs.
        environment: variables by which a server reaches it.
        strangers: the same with credentials that it does not know.
        nobody: the same without credentials, on a machine that gives none.
        others: the same with credentials of another kind; empty where there is none to be tried.
        secret: what nobody may be shown.
        page: objects of one page of a listing.
        objects: what it holds, by name.
    """

    scheme: ClassVar[str]
    page: ClassVar[int] = 100

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.nowhere = f"http://127.0.0.1:{free_port()}"
        self.objects: dict[str, bytes] = {}
        self.client = httpx.Client(timeout=SOON)
        self.runs = False
        self.environment: dict[str, str] = {}
        self.strangers: dict[str, str] = {}
        self.nobody: dict[str, str] = {}
        self.others: dict[str, str] = {}
        self.secret = ""

    def put(self, name: str, data: bytes) -> None:
        """Send an object, at once if the server runs."""
        self.objects[name] = data
        if self.runs:
            self._send(name, data)

    def delete(self, name: str) -> None:
        """Delete an object."""
        del self.objects[name]
        self._delete(name)

    def start(self) -> None:
        """Start the server, and send what it lost; nothing if it runs."""
        if not self.runs:
            self._start()
            self.runs = True
            for name, data in sorted(self.objects.items()):
                self._send(name, data)

    def stop(self) -> None:
        """Kill the server; it forgets everything."""
        if self.runs:
            self.runs = False
            self._stop()

    def close(self) -> None:
        """Stop the server for good."""
        self.stop()
        self.client.close()

    @contextmanager
    def strict(self) -> Iterator[None]:
        """Have credentials checked meanwhile, if they are not always."""
        yield

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _stop(self) -> None: ...

    @abstractmethod
    def _send(self, name: str, data: bytes) -> None: ...

    @abstractmethod
    def _delete(self, name: str) -> None: ...


class _ProcessBucket(Bucket):
    def _run(self, program: str, *arguments: str, path: str = "", **environment: str) -> None:
        self._process = subprocess.Popen(
            [program, *arguments],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: responses(f"{self.url}{path}"))

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()


class S3Bucket(_ProcessBucket):
    """A bucket of moto."""

    scheme = "s3"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.secret = "not-to-be-shown"
        self.nobody = {
            "AWS_ENDPOINT": self.url,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": "us-east-1",
            "AWS_METADATA_ENDPOINT": self.nowhere,
        }
        self.environment = self.nobody | {
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": self.secret,
        }
        self.strangers = self.environment

    @contextmanager
    def strict(self) -> Iterator[None]:
        self._check_after("0")
        try:
            yield
        finally:
            self._check_after("inf")

    def _check_after(self, requests: str) -> None:
        self.client.post(f"{self.url}/moto-api/reset-auth", content=requests).raise_for_status()

    def _start(self) -> None:
        program = shutil.which("moto_server", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert program is not None, "moto is not installed; make test-cluster installs it"
        arguments = ("-H", "127.0.0.1", "-p", str(self.port))
        self._run(program, *arguments, path="/moto-api/", MOTO_S3_DEFAULT_MAX_KEYS=str(self.page))
        self._ask("PUT", "")

    def _send(self, name: str, data: bytes) -> None:
        self._ask("PUT", f"/{_quoted(name)}", data)

    def _delete(self, name: str) -> None:
        self._ask("DELETE", f"/{_quoted(name)}")

    def _ask(self, method: str, path: str, data: bytes = b"") -> None:
        address = f"{self.url}/{NAME}{path}"
        self.client.request(method, address, content=data, headers=_SIGNED).raise_for_status()


class AzureBucket(_ProcessBucket):
    """A container of azurite, Microsoft's own emulator. Skips the test where it is not installed."""

    scheme = "az"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        installed = Path(sys.prefix) / "azurite" / "node_modules" / ".bin"
        found = shutil.which("azurite-blob", path=f"{installed}:{os.environ['PATH']}")
        if found is None:
            pytest.skip("there is no azurite, which make test-cluster installs where node is")
        self._program = found
        key = base64.b64encode(b"not-to-be-shown-not-to-be-shown").decode()
        self.secret = key
        self._signature = _account_signature("kuiper", key)
        self.nobody = {
            "AZURE_STORAGE_ACCOUNT_NAME": "kuiper",
            # the size of pages is the client's to choose, and obstore leaves it to the server
            "AZURE_STORAGE_ENDPOINT": f"{self.url}/kuiper?maxresults={self.page}",
            "AZURE_ALLOW_HTTP": "true",
            "AZURE_MSI_ENDPOINT": f"{self.nowhere}/metadata/identity/oauth2/token",
        }
        self.environment = self.nobody | {"AZURE_STORAGE_ACCOUNT_KEY": key}
        self.others = self.nobody | {"AZURE_STORAGE_SAS_TOKEN": self._signature}
        self.strangers = self.nobody | {"AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(b"another").decode()}

    def _start(self) -> None:
        arguments = (
            "--blobHost",
            "127.0.0.1",
            "--blobPort",
            str(self.port),
            "--inMemoryPersistence",
            "--silent",
        )
        self._run(
            self._program,
            *arguments,
            "--disableProductStyleUrl",
            AZURITE_ACCOUNTS=f"kuiper:{self.environment['AZURE_STORAGE_ACCOUNT_KEY']}",
        )
        self._ask("PUT", "?restype=container&")

    def _send(self, name: str, data: bytes) -> None:
        self._ask("PUT", f"/{_quoted(name)}?", data)

    def _delete(self, name: str) -> None:
        self._ask("DELETE", f"/{_quoted(name)}?")

    def _ask(self, method: str, path: str, data: bytes = b"") -> None:
        address = f"{self.url}/kuiper/{NAME}{path}{self._signature}"
        headers = {"x-ms-blob-type": "BlockBlob"}
        self.client.request(method, address, content=data, headers=headers).raise_for_status()


def _quoted(name: str) -> str:
    """Return a name as it is written in a URL, where '..' would be taken for a folder above."""
    return quote(name).replace("..", "%2e%2e")


def _account_signature(account: str, key: str) -> str:
    """Return the query of a shared access signature for all that can be done with blobs.

    As in https://learn.microsoft.com/rest/api/storageservices/create-account-sas.
    """
    fields = {"sp": "rwdlac", "ss": "b", "srt": "sco", "se": "2099-01-01T00:00:00Z", "sv": "2019-02-02"}
    permissions, services, types, end, version = fields.values()
    text = "\n".join([account, permissions, services, types, "", end, "", "", version, ""])
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return urlencode(fields | {"sig": base64.b64encode(digest).decode()})
