"""Schemas of the protocol's responses; inference writes the same JSON without pydantic."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from service.telemetry.model_statistics import BatchStatistics, Duration


class _View(BaseModel):
    model_config = ConfigDict(protected_namespaces=())


class Live(_View):
    """The process is alive."""

    live: bool = True


class Ready(_View):
    """Requests are accepted."""

    ready: bool = True


class ModelReady(_View):
    """The model accepts requests."""

    name: str
    ready: bool = True


class ServerMetadata(_View):
    """The server and the extensions that it supports."""

    name: str
    version: str
    extensions: list[str]


class ImageForm(_View):
    """How an input that takes images may be sent as encoded images."""

    datatype: str = "BYTES"
    shape: list[int] = Field(description="[batch], -1 for any number; [batch, 1] is taken as well")
    formats: list[str] = Field(description="image formats of the elements")


class TensorParameters(_View):
    """Other properties of an input."""

    image: ImageForm | None = Field(
        default=None, description="the input may be sent as BYTES, one encoded image an element"
    )


class TensorMetadata(_View):
    """An input or output of a model."""

    name: str
    datatype: str
    shape: list[int] = Field(description="-1 for a dimension of any extent")
    parameters: TensorParameters | None = None


class ModelMetadata(_View):
    """A model with its versions, inputs and outputs."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class TensorConfig(_View):
    """An input or output in a model's configuration."""

    name: str
    data_type: str
    dims: list[int] = Field(description="without the batch dimension unless max_batch_size is 0")


class DynamicBatching(_View):
    """How requests are combined into batches."""

    preferred_batch_size: list[int]
    max_queue_delay_microseconds: int


class InstanceGroup(_View):
    """The workers that run a model."""

    name: str
    kind: str = "KIND_CPU"
    count: int


class StringValue(_View):
    """The value of a parameter."""

    string_value: str


class ModelConfiguration(_View):
    """A model's configuration, in Triton's terms."""

    name: str
    platform: str
    backend: str
    max_batch_size: int
    input: list[TensorConfig]
    output: list[TensorConfig]
    dynamic_batching: DynamicBatching | None = None
    instance_group: list[InstanceGroup]
    parameters: dict[str, StringValue]


class EmptyResponse(_View):
    """The model was loaded or unloaded."""


class InferStatistics(_View):
    """Numbers of requests, and how long each stage took."""

    success: Duration
    fail: Duration
    queue: Duration
    compute_input: Duration
    compute_infer: Duration
    compute_output: Duration
    cache_hit: Duration
    cache_miss: Duration


class ModelStatisticsView(_View):
    """Statistics of a model."""

    name: str
    version: str
    last_inference: int = Field(
        description="time of the last response, in milliseconds since the epoch; 0: never"
    )
    inference_count: int
    execution_count: int
    inference_stats: InferStatistics
    batch_stats: list[BatchStatistics]


class ModelStatisticsList(_View):
    """Statistics of models."""

    model_stats: list[ModelStatisticsView]


class TraceSettingView(_View):
    """Which runs are traced without a request asking for it."""

    trace_level: list[str] = Field(description="OFF or TIMESTAMPS")
    trace_rate: str = Field(description="N, where every Nth run is traced; 0: none")
    trace_count: str = Field(description="how many runs are still to be traced; -1: no limit")
    trace_file: str = Field(description="always empty: GET /traces shows the traces")
    log_frequency: str
    trace_mode: str


class LogSettingView(_View):
    """The log settings."""

    log_file: str = Field(description="always empty: the log goes to standard error")
    log_info: bool
    log_warning: bool
    log_error: bool
    log_verbose_level: int
    log_format: str


class InferResponseTensor(_View):
    """An output in a response."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, Any] | None = Field(default=None, description="binary_data_size of binary data")
    data: list[Any] | None = Field(
        default=None, description="flat list; left out if the output follows as binary data"
    )


class InferResponse(_View):
    """The JSON part of the response to an inference request."""

    id: str | None = None
    model_name: str
    model_version: str
    parameters: dict[str, Any] | None = Field(
        default=None, description="the trace, if the request asked for it"
    )
    outputs: list[InferResponseTensor]
