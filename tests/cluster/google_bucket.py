"""A bucket of Google Cloud Storage, as far as it is read: a stand-in, made by what Google documents of its XML API.

Emulators of it speak Google's JSON API, which obstore does not use, or show other entity tags, no pages and no errors.
"""

import base64
import hashlib
import json
import threading
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.cluster.buckets import NAME, Bucket

ACCOUNT = "reader@project.iam.gserviceaccount.com"
_MACHINE_TOKEN = "ya29.of-the-machine"
_WRITTEN = datetime(2026, 1, 1, tzinfo=UTC)


class GoogleBucket(Bucket):
    """A bucket that is read with the key of a service account, or with the token of the machine's account."""

    scheme = "gs"
    page = 1000  # the most that Google shows at once

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.key = generate_private_key(65537, 2048)
        self.secret = _in_pem(self.key).splitlines()[1]
        public = {"GOOGLE_BASE_URL": self.url, "GOOGLE_ALLOW_HTTP": "true"}
        self.nobody = public | {
            "GCE_METADATA_HOST": self.nowhere.removeprefix("http://"),
            "GCE_METADATA_IP": self.nowhere.removeprefix("http://"),
        }
        self.environment = public | self._account("account.json", self.key)
        self.strangers = public | self._account("stranger.json", generate_private_key(65537, 2048))
        self.others = public | {"GCE_METADATA_HOST": f"127.0.0.1:{self.port}"}

    def _account(self, name: str, key: RSAPrivateKey) -> dict[str, str]:
        """Write the file that Google makes for a service account."""
        place = self.folder / name
        account = {
            "type": "service_account",
            "private_key_id": "1",
            "client_email": ACCOUNT,
            "client_id": "1",
        }
        place.write_text(json.dumps(account | {"private_key": _in_pem(key)}))
        return {"GOOGLE_APPLICATION_CREDENTIALS": str(place)}

    def _start(self) -> None:
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def _stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _send(self, name: str, data: bytes) -> None:
        """Do nothing: the server reads what is noted."""

    def _delete(self, name: str) -> None:
        """Do nothing, as for `_send`."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, bucket: GoogleBucket) -> None:
        super().__init__(("127.0.0.1", bucket.port), _Handler)
        self.bucket = bucket

    def knows(self, authorization: str | None) -> bool:
        """Return whether a request has a token of the machine, or one that the service account signed."""
        kind, _, token = (authorization or "").partition(" ")
        if kind != "Bearer":
            return False
        signed, _, signature = token.rpartition(".")
        try:
            public = self.bucket.key.public_key()
            public.verify(_decoded(signature), signed.encode(), PKCS1v15(), SHA256())
            claims: dict[str, Any] = json.loads(_decoded(signed.partition(".")[2]))
        except (InvalidSignature, ValueError):
            return token == _MACHINE_TOKEN
        return bool(claims["iss"] == ACCOUNT and claims["exp"] > time.time())


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        bucket, _, name = url.path.removeprefix("/").partition("/")
        if bucket == "computeMetadata":
            self._show_token()
        elif not self.server.knows(self.headers["Authorization"]):
            self._refuse(401, "AuthenticationRequired", "Authentication required.")
        elif bucket != NAME:
            self._refuse(404, "NoSuchBucket", "The specified bucket does not exist.")
        elif not name:
            self._list({key: values[0] for key, values in parse_qs(url.query).items()})
        elif (data := self.server.bucket.objects.get(unquote(name))) is None:
            self._refuse(404, "NoSuchKey", "The specified key does not exist.")
        else:
            self._respond(200, "application/octet-stream", data, _tag(data))

    def _show_token(self) -> None:
        assert self.headers["Metadata-Flavor"] == "Google"
        token = {"access_token": _MACHINE_TOKEN, "expires_in": 3599, "token_type": "Bearer"}
        self._respond(200, "application/json", json.dumps(token).encode())

    def _list(self, query: dict[str, str]) -> None:
        """Answer as https://cloud.google.com/storage/docs/xml-api/get-bucket-list describes for `list-type=2`."""
        prefix, after = query.get("prefix", ""), query.get("continuation-token", "")
        objects = dict(self.server.bucket.objects)
        names = sorted(name for name in objects if name.startswith(prefix) and name > after)
        page = names[: self.server.bucket.page]
        is_cut = len(page) < len(names)
        token = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if is_cut else ""
        contents = "".join(
            f"<Contents><Key>{escape(name)}</Key><Generation>1</Generation><MetaGeneration>1</MetaGeneration>"
            f"<LastModified>{_WRITTEN:%Y-%m-%dT%H:%M:%S}.000Z</LastModified><ETag>{escape(_tag(objects[name]))}</ETag>"
            f"<Size>{len(objects[name])}</Size></Contents>"
            for name in page
        )
        text = (
            f"<?xml version='1.0' encoding='UTF-8'?><ListBucketResult xmlns='http://doc.s3.amazonaws.com/2006-03-01'>"
            f"<Name>{NAME}</Name><Prefix>{escape(prefix)}</Prefix><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            f"{token}{contents}</ListBucketResult>"
        )
        assert query["list-type"] == "2"
        self._respond(200, "application/xml; charset=UTF-8", text.encode())

    def _refuse(self, status: int, code: str, message: str) -> None:
        text = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
        self._respond(status, "application/xml; charset=UTF-8", text.encode())

    def _respond(self, status: int, kind: str, data: bytes, tag: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if tag:
            self.send_header("ETag", tag)
            self.send_header("Last-Modified", format_datetime(_WRITTEN, usegmt=True))
            self.send_header("x-goog-generation", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _tag(data: bytes) -> str:
    return f'"{hashlib.md5(data, usedforsecurity=False).hexdigest()}"'


def _in_pem(key: RSAPrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
