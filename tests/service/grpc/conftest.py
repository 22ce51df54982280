"""A real server that answers HTTP and gRPC, and the real clients of both."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import grpc
import pytest
import tritonclient.grpc as triton
import tritonclient.http as triton_http

from tests.service.grpc.servers import RawClient, grpc_address, serving_both
from tests.service.server.process import ServerProcess


@pytest.fixture(scope="session")
def grpc_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with serving_both(tmp_path_factory.mktemp("grpc")) as started:
        yield started


@pytest.fixture(scope="session")
def address(grpc_server: ServerProcess) -> str:
    return grpc_address(grpc_server)


@pytest.fixture
def client(address: str) -> Iterator[triton.InferenceServerClient]:
    with triton.InferenceServerClient(address) as created:
        yield created


@pytest.fixture
def http(grpc_server: ServerProcess) -> Iterator[triton_http.InferenceServerClient]:
    with triton_http.InferenceServerClient(urlsplit(grpc_server.url).netloc) as created:
        yield created


@pytest.fixture
def raw(address: str) -> Iterator[RawClient]:
    with grpc.insecure_channel(address) as channel:
        yield RawClient(channel)
