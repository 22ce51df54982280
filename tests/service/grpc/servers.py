"""What tests of gRPC share: where a server listens, calls of bare bytes, and what refusals say."""

import re
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
from tritonclient.grpc import service_pb2
from tritonclient.utils import InferenceServerException, np_to_triton_dtype

from engine import Array
from tests.service.server.process import SOON, ServerProcess
from tests.service.v2.models import add_v2_models

INFER = "/inference.GRPCInferenceService/ModelInfer"
_LISTENING = re.compile(r"gRPC is listening on ([0-9.]+:\d+)")


FLAGS = ("--no-warm-up", "--model-control", "explicit", "--max-body-bytes", "200000", "--workers", "2")


def serving_both(folder: Path) -> ServerProcess:
    """Return a server of the models of /v2, which are written to a folder."""
    return ServerProcess("--models", str(add_v2_models(folder)), "--grpc-port", "0", *FLAGS)


def grpc_address(server: ServerProcess) -> str:
    """Return where a server answers gRPC, which it logs before it says that it is ready."""
    return next(found[1] for line in server.lines if (found := _LISTENING.search(line)))


def blocked(number: int, **fields: Any) -> bytes:
    """Return a request for the model that waits for the test, in whose place the number stands."""
    entry = service_pb2.ModelInferRequest.InferInputTensor(name="0", datatype="FP32", shape=[1])
    data = np.array([number], np.float32).tobytes()
    message = service_pb2.ModelInferRequest(
        model_name="blocking", inputs=[entry], raw_input_contents=[data], **fields
    )
    written = message.SerializeToString()
    assert isinstance(written, bytes)
    return written


class RawClient:
    """Sends messages as they are."""

    def __init__(self, channel: grpc.Channel) -> None:
        self.channel = channel

    def call(self, data: bytes, method: str = "ModelInfer", **options: Any) -> bytes:
        options.setdefault("timeout", SOON)
        response = self.channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(data, **options)
        assert isinstance(response, bytes)
        return response

    def infer(self, **fields: Any) -> Any:
        request = service_pb2.ModelInferRequest(**fields)
        return service_pb2.ModelInferResponse.FromString(self.call(request.SerializeToString()))

    def refusal(self, data: bytes, method: str = "ModelInfer", **options: Any) -> tuple[str, str, str]:
        """Return status code, error code and sentence of a call that is refused."""
        with pytest.raises(grpc.RpcError) as caught:
            self.call(data, method, **options)
        return reported(caught.value)


def reported(error: Any) -> tuple[str, str, str]:
    """Return status code, error code and sentence of an error."""
    metadata = dict(error.trailing_metadata() or ())
    return error.code().name, metadata.get("error-code", ""), error.details()


def tensor(name: str, array: Array, datatype: str | None = None) -> Any:
    created = triton.InferInput(name, list(array.shape), datatype or np_to_triton_dtype(array.dtype))
    return created.set_data_from_numpy(array)


def refusal(client: Any, model: str, inputs: list[Any], **options: Any) -> tuple[str, str]:
    """Return the status and the message of an inference that is refused."""
    with pytest.raises(InferenceServerException) as caught:
        client.infer(model, inputs, **options)
    return caught.value.status().removeprefix("StatusCode."), caught.value.message()


def same(first: Array | None, second: Array | None) -> None:
    """Check that two arrays are equal in dtype, shape and every bit."""
    assert first is not None
    assert second is not None
    assert (first.dtype, first.shape) == (second.dtype, second.shape)
    if first.dtype == object:
        assert first.tolist() == second.tolist()
    else:
        assert np.ascontiguousarray(first).tobytes() == np.ascontiguousarray(second).tobytes()
