import subprocess
import sys

from google.protobuf.descriptor import FieldDescriptor
from tritonclient.grpc import model_config_pb2, service_pb2

from service.grpc.messages import DESCRIPTORS, POOL
from tests.service.grpc.descriptors import compiled


def test_the_descriptors_are_those_of_the_proto_files() -> None:
    assert DESCRIPTORS.read_bytes() == compiled(), "run python -m tests.service.grpc.descriptors"


def test_names_numbers_and_types_are_those_of_tritons_client() -> None:
    for file, theirs in (("open_inference.proto", service_pb2), ("model_config.proto", model_config_pb2)):
        own = POOL.FindFileByName(file)
        for name, message in own.message_types_by_name.items():
            _compare(message, theirs.DESCRIPTOR.message_types_by_name[name])
        for name, enum in own.enum_types_by_name.items():
            expected = theirs.DESCRIPTOR.enum_types_by_name[name]
            assert [(value.name, value.number) for value in enum.values] == [
                (value.name, value.number) for value in expected.values
            ]
    service = POOL.FindServiceByName("inference.GRPCInferenceService")
    wanted = service_pb2.DESCRIPTOR.services_by_name["GRPCInferenceService"]
    for method in service.methods:
        same = wanted.methods_by_name[method.name]
        assert method.input_type.full_name == same.input_type.full_name
        assert method.output_type.full_name == same.output_type.full_name
        streams = method.client_streaming, method.server_streaming
        assert streams == (same.client_streaming, same.server_streaming)


def _compare(own: object, theirs: object) -> None:
    for field in own.fields:  # type: ignore[attr-defined]
        expected = theirs.fields_by_name[field.name]  # type: ignore[attr-defined]
        assert (field.number, field.type, field.is_repeated) == (
            expected.number,
            expected.type,
            expected.is_repeated,
        ), field.full_name
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            assert field.message_type.full_name == expected.message_type.full_name
    for nested in own.nested_types:  # type: ignore[attr-defined]
        _compare(nested, theirs.nested_types_by_name[nested.name])  # type: ignore[attr-defined]


def test_messages_are_beside_those_of_tritons_client_in_either_order() -> None:
    modules = ["service.grpc.messages", "tritonclient.grpc"]
    for first, second in (modules, modules[::-1]):
        subprocess.run([sys.executable, "-c", f"import {first}, {second}"], check=True)


def test_no_grpc_is_imported_where_no_port_is_set() -> None:
    script = "import sys, service.app, service.server.server; sys.exit(bool({'grpc', 'google'} & set(sys.modules)))"
    subprocess.run([sys.executable, "-c", script], check=True)
