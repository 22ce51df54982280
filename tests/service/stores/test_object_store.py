"""What is made of a listing of an object store, and of the tags in it."""

from collections.abc import Iterator
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
        ('"0x8D93C7D4629C227"', '"0x8D93C7D4629C227"'),
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
        ("s3", f'"{MD5}"', ("md5", MD5)),
        ("gs", f'"{MD5}"', ("md5", MD5)),
        ("gs", '"CKih16GjycICEAE="', None),
        ("s3", f'"{MD5}-2"', None),
        ("az", MD5, None),
    ],
)
def test_a_tag_of_s3_and_google_may_be_a_digest(
    scheme: str, tag: str, expected: tuple[str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    monkeypatch.setenv("GOOGLE_SKIP_SIGNATURE", "true")
    store = ObjectStore(StoreUrl(scheme, "bucket", ""))
    assert store.digest(FileMark("a", 5, tag)) == expected
    assert not store.is_sure()
