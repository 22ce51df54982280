"""Hugging Face's protocol, against a stand-in of this process: nothing of the network is asked."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from service.config.settings import Settings
from service.config.store_url import StoreUrl
from service.repository.model_source import SourceError
from service.repository.repository import load_repository
from service.stores.file_pool import FilePool
from service.stores.hugging_face import HuggingFaceStore
from service.stores.store_source import StoreSource
from tests.service.stores.folders import scale_of, write_scale

URL = StoreUrl("hf", "org", "name/models")
LARGE = b"large" * 1000


class Hub(ThreadingHTTPServer):
    """A repository `org/name` of one commit at a time."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.commits: list[dict[str, bytes]] = []
        self.tokens: set[str | None] = set()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def newest(self) -> str:
        return f"{len(self.commits):040x}"

    def entry(self, path: str, data: bytes) -> dict[str, object]:
        oid = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        entry: dict[str, object] = {"type": "file", "path": path, "size": len(data), "oid": oid}
        if path.endswith(".bin"):
            lfs = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 10}
            entry |= {"oid": "0" * 40, "lfs": lfs}
        return entry


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
        self._tree(lambda path: path in asked)

    def do_GET(self) -> None:
        self.server.tokens.add(self.headers["Authorization"])
        parts = unquote(urlsplit(self.path).path).strip("/").split("/")
        if parts[:4] == ["api", "models", "org", "name"]:
            if parts[4:5] == ["tree"]:
                folder = "/".join(parts[6:])
                self._tree(lambda path: path.startswith(f"{folder}/"))
            else:
                self._send(json.dumps({"id": "org/name", "sha": self.server.newest, "siblings": []}).encode())
        elif parts[:3] == ["org", "name", "resolve"]:
            commit = self.server.commits[int(parts[3], 16) - 1]
            path = "/".join(parts[4:])
            self._send(commit[path])
        else:
            self._send(b'{"error": "Repository not found"}', 404)

    def _tree(self, is_asked: Callable[[str], bool]) -> None:
        files = self.server.commits[-1].items()
        folders = sorted({path.rpartition("/")[0] for path, _ in files if is_asked(path)} - {""})
        found = [{"type": "directory", "path": folder, "oid": "0" * 40, "size": 0} for folder in folders]
        found += [self.server.entry(path, data) for path, data in files if is_asked(path)]
        self._send(json.dumps(found).encode())

    def _send(self, data: bytes, status: int = 200) -> None:
        first, last = 0, len(data) - 1
        if asked := self.headers["Range"]:
            start, _, end = asked.removeprefix("bytes=").partition("-")
            first, last, status = int(start), min(int(end or last), last), 206
        self.send_response(status)
        self.send_header("Content-Length", str(last + 1 - first))
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Repo-Commit", self.server.newest)
        self.send_header("ETag", '"e"')
        if status == 206:
            self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[first : last + 1])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    with Hub() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        monkeypatch.setenv("HF_TOKEN", "hf_not_to_be_shown")
        files = {path.name: path.read_bytes() for path in write_scale(tmp_path / "made", 3).iterdir()}
        made.commits.append({f"models/m/{name}": data for name, data in files.items()} | {"README.md": b"x"})
        yield made
        made.shutdown()
        thread.join()


def source(hub: Hub, tmp_path: Path) -> StoreSource:
    return StoreSource(HuggingFaceStore(URL, hub.address), URL, FilePool(tmp_path / "cache", 1 << 20), None)


def test_models_of_a_repository_are_served(hub: Hub, tmp_path: Path) -> None:
    repository = load_repository(Settings(models=URL, backend="numpy"), source=source(hub, tmp_path))
    assert [scale_of(model) for model in repository] == [3]
    assert hub.tokens == {"Bearer hf_not_to_be_shown"}


def test_files_are_those_of_the_folder(hub: Hub) -> None:
    store = HuggingFaceStore(URL, hub.address)
    files = {file.path: file for file in store.list()}
    assert sorted(files) == ["m/model.bin", "m/model.param"]
    weights = hub.commits[0]["models/m/model.bin"]
    assert all(len(file.tag) == 40 for file in files.values())
    assert b"".join(store.read(files["m/model.bin"])) == weights


def test_a_file_that_changed_since_it_was_listed_is_not_read(hub: Hub) -> None:
    store = HuggingFaceStore(URL, hub.address)
    files = {file.path: file for file in store.list()}
    changed = hub.commits[0]["models/m/model.param"].replace(b"scale", b"other")
    hub.commits.append(hub.commits[0] | {"models/m/model.param": changed})
    list(store.list())  # as another thread does
    with pytest.raises(SourceError, match="m/model.param has changed since it was listed"):
        list(store.read(files["m/model.param"]))
    assert b"".join(store.read(files["m/model.bin"])) == hub.commits[1]["models/m/model.bin"]


def test_a_repository_that_is_not_there_is_an_error_in_words(hub: Hub, tmp_path: Path) -> None:
    url = StoreUrl("hf", "org", "nowhere")
    nowhere = StoreSource(
        HuggingFaceStore(url, hub.address), url, FilePool(tmp_path / "cache", 1 << 20), None
    )
    with pytest.raises(SourceError, match="hf://org/nowhere cannot be read: ") as caught:
        nowhere.refresh()
    assert "not_to_be_shown" not in str(caught.value)
