"""Keys, certificates, rates and time limits: those of HTTP."""

import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
import tritonclient.grpc as triton
import trustme
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException

from service.app import create_app
from service.config.setting_file import SettingsError
from service.config.settings import Settings
from tests.service.grpc.servers import RawClient, grpc_address
from tests.service.models import VECTOR, add_model
from tests.service.server.process import ServerProcess

KEYS = {
    "KUIPER_API_KEYS": "first-key-of-the-test,second-key-of-the-test",
    "KUIPER_ADMIN_KEYS": "admin-key-of-the-test",
}
FIRST = (("authorization", "Bearer first-key-of-the-test"),)
SECOND = (("x-api-key", "second-key-of-the-test"),)
ADMIN = (("authorization", "Bearer admin-key-of-the-test"),)
METADATA = service_pb2.ModelMetadataRequest(name="vector").SerializeToString()
LOAD = service_pb2.RepositoryModelLoadRequest(model_name="vector").SerializeToString()


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[ServerProcess]:
    root = tmp_path_factory.mktemp("access")
    add_model(root / "models", "vector", VECTOR)
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(root / "server.pem")
    flags = ("--grpc-port", "0", "--no-warm-up", "--timeout", "2")
    secure = ("--ssl-certfile", str(root / "server.pem"), "--model-control", "explicit")
    with ServerProcess("--models", str(root / "models"), *flags, *secure, environment=KEYS) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess, authority: trustme.CA) -> Iterator[RawClient]:
    credentials = grpc.ssl_channel_credentials(authority.cert_pem.bytes())
    with grpc.secure_channel(grpc_address(server), credentials) as channel:
        yield RawClient(channel)


def test_keys_are_those_of_http(client: RawClient) -> None:
    refused = client.refusal(METADATA, "ModelMetadata")
    assert refused[:2] == ("UNAUTHENTICATED", "key_needed")
    wrong = client.refusal(METADATA, "ModelMetadata", metadata=(("x-api-key", "no-key-of-the-test"),))
    assert wrong[:2] == ("UNAUTHENTICATED", "unknown_key")
    for metadata in (FIRST, SECOND, ADMIN):
        assert client.call(METADATA, "ModelMetadata", metadata=metadata)
    assert client.refusal(LOAD, "RepositoryModelLoad", metadata=FIRST)[:2] == (
        "PERMISSION_DENIED",
        "admin_key_needed",
    )
    client.call(LOAD, "RepositoryModelLoad", metadata=ADMIN)


@pytest.mark.parametrize("method", ["TraceSetting", "LogSettings"])
def test_settings_are_shown_to_all_and_changed_by_admins(client: RawClient, method: str) -> None:
    change = getattr(service_pb2, f"{method}Request")()
    if method == "TraceSetting":
        change.settings["trace_rate"].value.append("50")
    else:
        change.settings["log_info"].bool_param = True
    client.call(b"", method, metadata=FIRST)
    refused = client.refusal(change.SerializeToString(), method, metadata=FIRST)
    assert refused[:2] == ("PERMISSION_DENIED", "admin_key_needed")
    client.call(change.SerializeToString(), method, metadata=ADMIN)


def test_health_needs_no_key(client: RawClient) -> None:
    assert client.call(b"", "ServerLive")
    assert client.channel.unary_unary("/grpc.health.v1.Health/Check")(b"")


def test_a_message_has_its_time_to_arrive(client: RawClient) -> None:
    ended = threading.Event()
    call = client.channel.stream_unary("/inference.GRPCInferenceService/ModelInfer").future(
        iter(ended.wait, True), metadata=ADMIN
    )
    error = call.exception()
    ended.set()
    assert (error.code().name, dict(error.trailing_metadata())["error-code"]) == (
        "DEADLINE_EXCEEDED",
        "body_timeout",
    )


def test_a_client_that_does_not_know_the_authority_is_not_answered(server: ServerProcess) -> None:
    with (
        triton.InferenceServerClient(grpc_address(server), ssl=True) as stranger,
        pytest.raises(InferenceServerException),
    ):
        stranger.is_server_live(client_timeout=5)


def test_a_key_with_a_password_is_refused(tmp_path: Path) -> None:
    settings = Settings(models=tmp_path, grpc_port=0, ssl_certfile=tmp_path, ssl_keyfile_password="x")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="gRPC takes no private key with a password"):
        create_app(settings)
