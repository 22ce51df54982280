"""The metadata of the server and its models."""

from collections.abc import Sequence

from engine import Port
from service.config.image_config import ImageConfig
from service.config.settings import Settings
from service.images.preparation import ImageInput, find_image_input
from service.repository.loaded_model import LoadedModel
from service.scheduling.policy import SchedulingPolicy, scheduling_policy
from service.v2.batching import has_dynamic_batch, max_batch_size
from service.v2.datatypes import BYTES, datatype_of
from service.v2.ports import DYNAMIC, wire_shape
from service.v2.schemas import (
    DynamicBatching,
    ImageForm,
    InstanceGroup,
    ModelConfiguration,
    ModelMetadata,
    ServerMetadata,
    StringValue,
    TensorConfig,
    TensorMetadata,
    TensorParameters,
)
from service.version import kuiper_version

SERVER_NAME = "kuiper-serve"
PLATFORM = "kuiper_pnnx"
BACKEND = "kuiper"
EXTENSIONS = (
    "binary_tensor_data",
    "classification",
    "logging",
    "model_configuration",
    "model_repository",
    "model_repository(unload_dependents)",
    "parameters",
    "schedule_policy",
    "statistics",
    "trace",
)


def describe_server() -> ServerMetadata:
    """Describe the server."""
    return ServerMetadata(name=SERVER_NAME, version=kuiper_version(), extensions=list(EXTENSIONS))


def describe_model(model: LoadedModel, versions: Sequence[str]) -> ModelMetadata:
    """Describe a model: the names, datatypes and shapes of its inputs and outputs."""
    dynamic_batch = has_dynamic_batch(model)
    return ModelMetadata(
        name=model.name,
        versions=list(versions),
        platform=PLATFORM,
        inputs=[_input(port, model.config.image, dynamic_batch) for port in model.graph.inputs],
        outputs=[_tensor(port, dynamic_batch) for port in model.graph.outputs],
    )


def describe_config(model: LoadedModel, settings: Settings) -> ModelConfiguration:
    """Describe the configuration of a model in the form of Triton's.

    Args:
        model: the model.
        settings: the server's, which say how its requests are scheduled where the model does not.
    """
    policy = scheduling_policy(model.config, settings, model.batching)
    parameters: dict[str, str] = {"task": model.config.task}
    images = [tensor.name for tensor in describe_model(model, []).inputs if tensor.parameters]
    if images:
        parameters["image_inputs"] = ",".join(images)
    if model.batching.refusal is not None:
        parameters["batching_refused"] = model.batching.refusal
    return ModelConfiguration(
        name=model.name,
        platform=PLATFORM,
        backend=BACKEND,
        max_batch_size=max_batch_size(model),
        input=[_tensor_config(port, model) for port in model.graph.inputs],
        output=[_tensor_config(port, model) for port in model.graph.outputs],
        dynamic_batching=_dynamic_batching(policy) if policy.max_batch_size > 1 else None,
        instance_group=[InstanceGroup(name=f"{model.name}_0", count=policy.workers)],
        parameters={key: StringValue(string_value=value) for key, value in parameters.items()},
    )


def _dynamic_batching(policy: SchedulingPolicy) -> DynamicBatching:
    return DynamicBatching(
        preferred_batch_size=list(policy.preferred_batch_sizes),
        max_queue_delay_microseconds=round(policy.max_queue_delay * 1e6),
    )


def _tensor(port: Port, dynamic_batch: bool) -> TensorMetadata:
    return TensorMetadata(
        name=port.operand, datatype=datatype_of(port), shape=wire_shape(port, dynamic_batch)
    )


def _input(port: Port, image: ImageConfig | None, dynamic_batch: bool) -> TensorMetadata:
    tensor = _tensor(port, dynamic_batch)
    target = find_image_input(image, port) if image is not None else None
    if image is not None and isinstance(target, ImageInput):
        batch = DYNAMIC if target.batch is None or (dynamic_batch and target.batched) else target.batch
        form = ImageForm(datatype=BYTES, shape=[batch], formats=list(image.formats))
        tensor.parameters = TensorParameters(image=form)
    return tensor


def _tensor_config(port: Port, model: LoadedModel) -> TensorConfig:
    dims = wire_shape(port, has_dynamic_batch(model))
    if max_batch_size(model) and len(dims) > 1:
        dims = dims[1:]
    return TensorConfig(name=port.operand, data_type=f"TYPE_{datatype_of(port)}", dims=dims)
