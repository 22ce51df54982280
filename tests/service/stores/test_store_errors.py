"""What users are reported of errors that obstore raises; the texts are what it said of stores and their emulators."""

import pytest

from service.config.store_url import StoreUrl
from service.repository.model_source import SourceError
from service.stores.store_errors import worded

REFUSED = """Generic MicrosoftAzure error: Error performing list request: Error performing GET \
http://127.0.0.1:40002/devstoreaccount1/bucket?restype=container&sig=SECRET in 11.991245ms - Server returned non-2xx \
status code: 403 Forbidden: <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<Error>
  <Code>AuthorizationFailure</Code>
  <Message>Server failed to authenticate the request.
RequestId:fda27b74
Time:2026-11-23T05:32:50.107Z</Message>
  <AuthenticationErrorDetail>SECRET</AuthenticationErrorDetail>
</Error>

Debug source:
Generic { store: "MicrosoftAzure" }"""
NO_BUCKET = (
    "Generic S3 error: Error performing list request: Error performing GET http://h/bucket?list-type=2 in 1.5s - "
    "Server returned non-2xx status code: 404 Not Found: <Error><Code>NoSuchBucket</Code>"
    "<Message>The specified bucket does not exist</Message><BucketName>bucket</BucketName></Error>"
)
ENDED = "Error performing GET http://127.0.0.1:1{} in {}, after 3 retries, max_retries: 3, retry_timeout: 30s  - gone"


def words(text: str) -> str:
    with pytest.raises(SourceError) as caught, worded(StoreUrl("az", "bucket", "models")):
        raise ValueError(text)
    return str(caught.value)


def test_a_response_in_xml_is_reported_by_its_code_and_message() -> None:
    assert words(NO_BUCKET) == (
        "az://bucket/models cannot be read: Generic S3 error: Error performing list request: Error performing GET "
        "http://h/bucket?… - Server returned non-2xx status code: 404 Not Found: NoSuchBucket: The specified bucket "
        "does not exist"
    )


def test_refused_credentials_are_reported_as_such_and_not_shown() -> None:
    reported = words(REFUSED)
    assert reported.startswith(
        "az://bucket/models cannot be read, as its credentials are missing, wrong or may not"
    )
    assert reported.endswith(
        "403 Forbidden: AuthorizationFailure: Server failed to authenticate the request."
    )
    assert "SECRET" not in reported


@pytest.mark.parametrize(
    "path",
    [
        "/latest/api/token",
        "/latest/meta-data/iam/security-credentials/",
        "/computeMetadata/v1/instance/service-accounts/default/token?audience=x",
        "/metadata/identity/oauth2/token?resource=x",
    ],
)
def test_a_machine_without_credentials_is_reported_as_such(path: str) -> None:
    assert "as the environment has no credentials and this machine gives none: " in words(
        ENDED.format(path, "1s")
    )


def test_a_store_that_is_gone_is_reported_alike_each_time() -> None:
    reported = {
        words(ENDED.format("/b", duration)) for duration in ("426.859994ms", "12.25s", "950.1µs", "80ns")
    }
    assert reported == {
        "az://bucket/models cannot be read: Error performing GET http://127.0.0.1:1/b, after 3 retries  - gone"
    }


def test_an_error_has_a_bounded_length() -> None:
    assert len(words("x" * 10_000)) < 500
