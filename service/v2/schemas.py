"""What the protocol's calls answer, but for inference, which answers ready-made bytes."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

Shape = list[int]


class _View(BaseModel):
    model_config = ConfigDict(protected_namespaces=())


class Live(_View):
    """The process lives."""

    live: bool = True


class Ready(_View):
    """Requests are accepted."""

    ready: bool = True


class ModelReady(_View):
    """A model can be asked."""

    name: str
    ready: bool = True


class ServerMetadata(_View):
    """What serves."""

    name: str
    version: str
    extensions: list[str]


class ImageForm(_View):
    """The other form of an input that takes images."""

    datatype: str = "BYTES"
    shape: Shape = Field(description="[batch], -1 for any number; [batch, 1] is taken as well")
    formats: list[str] = Field(description="how the elements are encoded")


class TensorParameters(_View):
    """What else is to be known of an input."""

    image: ImageForm | None = Field(
        default=None, description="the input may be sent as BYTES, one encoded image an element"
    )


class TensorMetadata(_View):
    """An input or output."""

    name: str
    datatype: str
    shape: Shape = Field(description="-1 for a dimension of any extent")
    parameters: TensorParameters | None = None


class ModelMetadata(_View):
    """A model."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class TensorConfig(_View):
    """An input or output in a model's configuration."""

    name: str
    data_type: str
    dims: Shape = Field(description="without the batch where max_batch_size is not 0")


class DynamicBatching(_View):
    """How requests are put together to batches."""

    preferred_batch_size: list[int]
    max_queue_delay_microseconds: int


class InstanceGroup(_View):
    """What runs a model."""

    name: str
    kind: str = "KIND_CPU"
    count: int


class StringValue(_View):
    """A parameter."""

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


class IndexLine(_View):
    """A version of a model in the repository, or a model of which no version is known."""

    name: str
    version: str | None = None
    state: str = Field(description="READY, LOADING or UNAVAILABLE")
    reason: str = Field(description="why it is not served; empty where it is")


class Done(_View):
    """What was asked for is done."""


class DurationView(_View):
    """How often, and how long together."""

    count: int
    ns: int


class InferStatistics(_View):
    """Requests, and where their time went."""

    success: DurationView
    fail: DurationView
    queue: DurationView
    compute_input: DurationView
    compute_infer: DurationView
    compute_output: DurationView
    cache_hit: DurationView
    cache_miss: DurationView


class BatchStatisticsView(_View):
    """Runs of one batch size."""

    batch_size: int
    compute_input: DurationView
    compute_infer: DurationView
    compute_output: DurationView


class ModelStatisticsView(_View):
    """What a model did."""

    name: str
    version: str
    last_inference: int = Field(description="milliseconds since the epoch; 0: never")
    inference_count: int
    execution_count: int
    inference_stats: InferStatistics
    batch_stats: list[BatchStatisticsView]


class StatisticsView(_View):
    """What models did."""

    model_stats: list[ModelStatisticsView]


class TraceSettingView(_View):
    """Which runs are traced unasked."""

    trace_level: list[str] = Field(description="OFF or TIMESTAMPS")
    trace_rate: str = Field(description="N of: every Nth run is traced")
    trace_count: str = Field(description="how many are still to be traced; -1 for no end")
    trace_file: str = Field(description="always empty: GET /traces shows the traces")
    log_frequency: str
    trace_mode: str


class LogSettingView(_View):
    """What is logged."""

    log_file: str = Field(description="always empty: standard error")
    log_info: bool
    log_warning: bool
    log_error: bool
    log_verbose_level: int
    log_format: str


class InferResponseTensor(_View):
    """An output."""

    name: str
    datatype: str
    shape: Shape
    parameters: dict[str, Any] | None = Field(default=None, description="binary_data_size of binary data")
    data: list[Any] | None = Field(default=None, description="flat; left out where it follows as binary data")


class InferResponse(_View):
    """The JSON part of an answer."""

    id: str | None = None
    model_name: str
    model_version: str
    parameters: dict[str, Any] | None = Field(default=None, description="trace, where it was asked for")
    outputs: list[InferResponseTensor]
