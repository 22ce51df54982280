"""What is made of a listing of an object store, and of the tags in it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace

import obstore
import pytest

from service.config.store_url import StoreUrl
from service.repository.fingerprint import FileMark
from service.repository.model_source import SourceError
from service.stores.object_store import ObjectStore

MD5 = "5d41402abc4b2a76b9719d911017c592"


@pytest.fixture
def store(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    return ObjectStore(StoreUrl("file", "", str(tmp_path_factory.mktemp("store")).lstrip("/")))


def response_with(tag: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the library answer with a tag, as stores do."""

    def stream(_: int) -> Iterator[bytes]:
        yield b"hello"

    response = SimpleNamespace(meta={"e_tag": tag}, stream=stream)
    monkeypatch.setattr(obstore, "get", lambda *_: response)


@pytest.mark.parametrize(
    ("listed", "answered"),
    [
        ("0x8D93C7D4629C227", '"0x8D93C7D4629C227"'),  # as Azure does
        ("0x8D93C7D4629C227", "0x8D93C7D4629C227"),
        ("1795411595.000000", None),
    ],
)
def test_a_tag_is_the_same_with_and_without_quotes(
    store: ObjectStore, listed: str, answered: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    response_with(answered, monkeypatch)
    assert b"".join(store.read(FileMark("a", 5, listed))) == b"hello"


def test_another_tag_is_another_file(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    response_with('"0x2"', monkeypatch)
    with pytest.raises(SourceError, match="a has changed since it was listed"):
        list(store.read(FileMark("a", 5, "0x1")))


@pytest.mark.parametrize(
    ("scheme", "tag", "expected"),
    [
        ("s3", f'"{MD5}"', MD5),
        ("gs", '"CKih16GjycICEAE="', "CKih16GjycICEAE="),
        ("s3", f'"{MD5}-2"', f"{MD5}-2"),
        ("az", MD5, MD5),
        ("az", '"0x2"', "0x2"),
        ("s3", None, "9.500000"),
    ],
)
def test_a_tag_is_that_of_the_store(
    scheme: str, tag: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    found = {"path": "a", "size": 5, "e_tag": tag, "last_modified": datetime.fromtimestamp(9.5, UTC)}
    monkeypatch.setattr(obstore, "list", lambda *_, **__: [[found]])
    store = ObjectStore(StoreUrl(scheme, "bucket", ""))
    assert list(store.list()) == [FileMark("a", 5, expected)]
