"""The messages of the services, made from their descriptors.

They are in a pool of their own: the generated modules of `tritonclient` and `kserve` define the same names in the
default pool, which takes each name once, and all of them may be imported in one process. `proto/services.binpb` is what
`protoc` makes of the `.proto` files beside it; unlike generated Python, every version of protobuf reads it.
"""

from pathlib import Path
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from service.config.limits import too_large
from service.grpc.wire import malformed

DESCRIPTORS = Path(__file__).parent / "proto" / "services.binpb"
"""The descriptors of all `.proto` files; `python -m tests.service.grpc.descriptors` writes it."""

INFERENCE_SERVICE = "inference.GRPCInferenceService"
HEALTH_SERVICE = "grpc.health.v1.Health"


def _load_pool() -> DescriptorPool:
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(DESCRIPTORS.read_bytes()).file:
        pool.Add(file)
    return pool


POOL = _load_pool()
"""The descriptors of the services and their messages."""


def message_class(name: str) -> Any:
    """Return the class of a message, by its full name such as `inference.ModelInferRequest`."""
    return GetMessageClass(POOL.FindMessageTypeByName(name))


def parse(message: Any, data: bytes, max_bytes: int) -> Any:
    """Return a message of a class from its bytes.

    Raises:
        ServiceError: 400 `invalid_message`, 413 `body_too_large`.
    """
    if len(data) > max_bytes:
        raise too_large("body_too_large", "the message", len(data), max_bytes, "bytes")
    try:
        return message.FromString(data)
    except DecodeError as error:
        raise malformed(f"it is no {message.DESCRIPTOR.name}") from error


ModelInferRequest = message_class("inference.ModelInferRequest")
ModelInferResponse = message_class("inference.ModelInferResponse")
