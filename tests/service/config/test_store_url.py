"""Folders and URLs of stores, and what is never shown of them."""

from pathlib import Path

import pytest

from service.config.setting_file import SettingsError
from service.config.settings import load_settings
from service.config.settings_view import settings_in_force
from service.config.store_url import StoreUrl, without_secrets, without_urls


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("s3://bucket", StoreUrl("s3", "bucket", "")),
        ("S3://bucket/a/b%20c/", StoreUrl("s3", "bucket", "a/b c")),
        ("gs://bucket/a", StoreUrl("gs", "bucket", "a")),
        ("az://container/a", StoreUrl("az", "container", "a")),
        ("hf://org/name@v1/folder", StoreUrl("hf", "org", "name@v1/folder")),
        ("file:///srv/models", StoreUrl("file", "", "srv/models")),
        ("models", Path("models")),
        ("./s3:/x", Path("s3:/x")),
    ],
)
def test_models_are_in_a_folder_or_a_store(given: str, expected: Path | StoreUrl) -> None:
    assert load_settings({"models": given}).models == expected


def test_a_place_is_shown_as_it_was_given() -> None:
    url = load_settings({"models": "s3://bucket/a/b"}).models
    assert (str(url), url.name) == ("s3://bucket/a/b", "b")
    shown = {
        value.name: value.value for value in settings_in_force(load_settings({"models": "s3://bucket/a"}))
    }
    assert shown["models"] == "s3://bucket/a"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("http://host/models", "expected a folder, or a URL that begins with s3, gs, az, hf, file and ://"),
        ("s3://", "expected s3://BUCKET/PREFIX"),
        ("hf://name", "expected hf://ORGANISATION/NAME"),
        ("file://host/x", "expected file:///FOLDER"),
        ("s3://bucket/a/../b", "without empty parts"),
        ("s3://bucket/a%2f..%2fb", "without empty parts"),
        ("s3://bucket/a//b", "without empty parts"),
        ("s3://KEY:SECRET@bucket/a", "credentials come from the environment"),
        ("s3://KEY:SEC/SECRET@bucket/a", "credentials come from the environment"),
        ("az://container/a?sig=SECRET", "credentials come from the environment"),
    ],
)
def test_other_places_are_refused_without_their_secrets(given: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        load_settings({"models": given})
    assert "SECRET" not in str(caught.value)


def test_secrets_of_urls_are_taken_out_of_a_text() -> None:
    text = without_secrets('GET "https://u:p@host/a?sig=s&x=y" failed (http://host/b?token=t), retried')
    assert text == 'GET "https://…@host/a?…" failed (http://host/b?…), retried'
    assert without_secrets("GET s3://KEY:a/b+c/d@bucket/x?y failed") == "GET s3://…@bucket/x?… failed"
    assert without_secrets("http://host:9000/a/b@main is gone") == "http://host:9000/a/b@main is gone"


def test_urls_are_taken_out_of_messages_to_clients() -> None:
    text = without_urls(
        "models cannot be read: GET http://minio.internal:9000/b?\u2026 in 3 ms, (s3://b/a), after 3"
    )
    assert text == "models cannot be read: GET \u2026 in 3 ms, (\u2026), after 3"
