"""`model.toml`: what a model is for, how its images are prepared, what its classes are called.

Every key has a default, and the file itself may be missing: such a model takes and gives raw tensors. A task may have
a table of its own, which has its name, and is described where the task is.

    task = "classification"         # or "raw", the default
    description = "Reads one handwritten digit."
    labels = "labels.txt"           # a file with one label per line, a list of strings, or a table { 0 = "cat" }
    precision = "auto"              # f32, bf16, int8, int4 or auto, with its `tolerance` of loss; default: the server's
    versions = "all"                # version folders to serve: "all", "latest" or numbers as in [1, 3]

    [image]                         # the model takes images
    size = [224, 224]               # height, width; default: the graph's own
    colour = "rgb"                  # gray, rgb or bgr
    resize = "stretch"              # stretch, fit (whole image, bars of `pad`), crop (centre) or height (lines)
    crop_fraction = 0.875           # crop: part of the shorter side that is kept
    shorter_side = 256              # crop: instead, what the shorter side is scaled to before the centre is cut
    pad = 114                       # fit: grey level of the bars, 0 to 255
    scale_up = false                # fit: do not enlarge small images
    resize_as = "pillow"            # whose arithmetic: pillow, torch or opencv
    resample = "bilinear"           # nearest, box, bilinear, hamming, bicubic or lanczos
    antialias = true                # smooth images that shrink; default: as the library does
    draft = true                    # decode large JPEGs at a part of their size where that is enough
    background = "auto"             # under transparent images: "auto" or [red, green, blue]
    scale = 0.00392156862745098     # value = (pixel * scale - mean) / std
    mean = [0.485, 0.456, 0.406]    # one per channel of `colour`, or one for all
    std = [0.229, 0.224, 0.225]
    formats = ["png", "jpeg"]       # formats that are taken; default: those of the server

    [classification]
    output = "out0"                 # default: the first output
    softmax = true                  # the output holds logits, not probabilities
    top_k = 5

    [text]                          # the model takes texts
    tokenizer = "tokenizer.json"    # a file beside this one
    max_length = 512                # most tokens of a text; longer ones are cut off
    inputs = ["input_ids"]          # what each input holds; default: ids, attention_mask, token_type_ids
    multiple = 16                   # lengths are filled up to a multiple of it, where there is a mask

    [text-embedding]
    output = "out0"                 # default: the first output
    pooling = "mean"                # or "cls"
    normalize = true                # vectors of length 1

    [scheduling]
    workers = 2                     # most of its runs side by side; default: all workers of the server
    threads = 1                     # threads inside one run; default: the server's setting, as for the next two
    queue_size = 64                 # requests that may wait for a worker; more get 503
    timeout = 30.0                  # timeout of a request in seconds; a request may set less, not more
    default_priority = 1            # priority of requests that name none; 1 is served first

    [batching]                      # requests run together, if the graph is proved to take that
    max_batch_size = 8              # maximum rows of such a run; default: the server's setting, as for the next
    max_queue_delay_ms = 2.0        # how long a request waits for others; 0: runs with what waits already
    preferred_batch_sizes = [4, 8]  # rows that are not waited beyond; default: only `max_batch_size`

    [warm_up]                       # what the model is compiled for at load, besides declared shapes and `image.size`
    shapes = [[1, 3, 480, 640]]     # shapes of its input; of several inputs: one list for each run, as in
                                    # [[[1, 128], [1, 128]], [[1, 256], [1, 256]]], in the order of the inputs

    [traffic]                       # of a model with several versions: who serves requests that name none
    weights = { "2" = 90, "3" = 10 }
    sticky = "X-User"               # the same value of this header always gets the same version
    shadow = { version = "3", share = 0.1 }     # a tenth of the requests runs on it as well; outputs are compared
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import (
    BeforeValidator,
    Field,
    ModelWrapValidatorHandler,
    PlainValidator,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from engine import LOSS_TOLERATED
from service.config.choices import PrecisionName
from service.config.image_config import ImageConfig as ImageConfig  # noqa: PLC0414
from service.config.labels import label_list, read_labels
from service.config.model_config_error import ModelConfigError as ModelConfigError  # noqa: PLC0414
from service.config.regular_file import read_text
from service.config.task_keys import (
    TASK_KEYS,
    TaskKeys,
    check_task,
    details_of,
    find_all_tasks,
    read_task_tables,
    reads_characters,
    task_tables,
)
from service.config.text_config import TextConfig, with_tokenizer
from service.config.toml_table import TomlTable
from service.config.traffic_config import ShadowConfig, TrafficConfig
from service.config.version_policy import VersionPolicy
from service.config.wording import nearest_of, problem_of
from service.errors import did_you_mean

FILE_NAME = "model.toml"
_NESTED_TABLES: Mapping[tuple[int | str, ...], type[TomlTable]] = {
    ("traffic", "shadow"): ShadowConfig,
}

_Table = TypeVar("_Table", bound=TomlTable)

_Labels = Annotated[tuple[str, ...], BeforeValidator(label_list), Field(strict=False, min_length=1)]


class SchedulingConfig(TomlTable):
    """How requests for the model are scheduled; by default as the server's settings say.

    Attributes:
        workers: maximum concurrent runs of the model.
        threads: threads per run.
        queue_size: maximum queued requests.
        timeout: seconds per request.
        default_priority: priority of requests without one; 1 is served first.
    """

    workers: int | None = Field(default=None, ge=1, le=1024)
    threads: int | None = Field(default=None, ge=1, le=1024)
    queue_size: int | None = Field(default=None, ge=0, le=100_000)
    timeout: float | None = Field(default=None, gt=0, le=86_400)
    default_priority: int = Field(default=1, ge=1, le=1 << 31)


_BatchSizes = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(strict=False)]


class BatchingConfig(TomlTable):
    """How requests for the model are run together; by default as the server's settings say.

    Attributes:
        max_batch_size: maximum rows of a run; 1 disables batching.
        max_queue_delay_ms: milliseconds that a request waits for others.
        preferred_batch_sizes: batch sizes that start a run without waiting for more rows.
    """

    max_batch_size: int | None = Field(default=None, ge=1, le=4096)
    max_queue_delay_ms: float | None = Field(default=None, ge=0, le=60_000)
    preferred_batch_sizes: _BatchSizes = ()

    @model_validator(mode="after")
    def _check_sizes(self) -> Self:
        limit = self.max_batch_size
        if limit is not None and any(size > limit for size in self.preferred_batch_sizes):
            raise ValueError(f"a preferred batch size is larger than max_batch_size = {limit}")
        return self


def _as_run(value: Any) -> Any:
    """Read the shape of the only input as a list of one shape."""
    return [value] if isinstance(value, list) and value and all(type(dim) is int for dim in value) else value


_Shape = Annotated[tuple[Annotated[int, Field(ge=1, le=1 << 31)], ...], Field(strict=False)]
_RunShapes = Annotated[tuple[_Shape, ...], BeforeValidator(_as_run), Field(strict=False)]


class WarmUpConfig(TomlTable):
    """What a model is compiled for when it is loaded, besides what its file declares and the size of images.

    Attributes:
        shapes: per run, the shape of each input in order.
    """

    shapes: Annotated[tuple[_RunShapes, ...], Field(strict=False)] = ()


class ModelConfig(TomlTable):
    """A whole `model.toml`.

    Attributes:
        task: what the outputs mean.
        description: one sentence for `GET /models`.
        labels: class names by index, or a table from index to name, as in `[labels]`, `0 = "cat"`; in the
            file also the name of a text file beside it, with a label or `0: cat` per line.
        versions: version folders to serve: "all", "latest", or a list of numbers.
        precision: precision of matrix products and convolutions; default: the server's setting.
        tolerance: accuracy budget of "auto": the maximum of |y - y32| / |y32| over outputs.
        image: how images are prepared; None for a model that takes none.
        text: how texts become ids; None for a model that takes none.
        scheduling: how requests are scheduled.
        batching: how requests are run together.
        warm_up: what it is compiled for at load.
        traffic: how its versions share the requests that name none; None: the highest version serves them.

    The table that has the task's name, as `[classification]`, is not among them: `task_table` returns it.
    """

    task: Annotated[str, PlainValidator(check_task)] = "raw"
    description: str | None = None
    labels: _Labels | None = None
    versions: VersionPolicy = "all"
    precision: PrecisionName | None = None
    tolerance: float = Field(default=LOSS_TOLERATED, ge=0, le=1)
    image: ImageConfig | None = None
    text: TextConfig | None = None
    scheduling: SchedulingConfig = SchedulingConfig()
    batching: BatchingConfig = BatchingConfig()
    warm_up: WarmUpConfig = WarmUpConfig()
    traffic: TrafficConfig | None = None

    _task_tables: dict[str, TomlTable] = PrivateAttr(default_factory=dict)

    def task_table(self, kind: type[_Table]) -> _Table:
        """Return the table of the model's task, its defaults where the file has none.

        Args:
            kind: the class of the task's table.
        """
        table = self._task_tables.get(self.task)
        return table if isinstance(table, kind) else kind()

    @model_validator(mode="wrap")
    @classmethod
    def _read_tables(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Validate the tables of tasks together with the other keys, and report the errors of both."""
        if not isinstance(values, dict):
            return handler(values)
        named = {
            name: value for name, value in values.items() if name == "task" or name not in cls.model_fields
        }
        tables, errors = read_task_tables(named)
        config = None
        try:
            config = handler({key: value for key, value in values.items() if key not in task_tables()})
        except ValidationError as error:
            errors = details_of(error) + errors
        if config is None or errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        config._task_tables = tables
        config._check_task()
        return config

    def _check_task(self) -> None:
        """Check that no key is given that belongs to another task."""
        if "labels" in self.model_fields_set and not TASK_KEYS.get(self.task, TaskKeys()).takes_labels:
            find_all_tasks()
            raise self._misplaced(
                "labels", [name for name, keys in sorted(TASK_KEYS.items()) if keys.takes_labels]
            )
        for name in self._task_tables:
            if name != self.task:
                raise self._misplaced(name, [name])

    def _misplaced(self, key: str, tasks: list[str]) -> ValueError:
        expected = " or ".join(f'"{name}"' for name in tasks)
        return ValueError(f'{key} is given, but task is "{self.task}"; expected task = {expected}')


def load_model_config(folder: Path | str) -> ModelConfig:
    """Read `model.toml` in a model's folder; the defaults where there is none.

    Raises:
        ModelConfigError: the file, or the labels file that it names, cannot be read or is not as described above.
    """
    path = Path(folder) / FILE_NAME
    try:
        values = tomllib.loads(read_text(path))
    except FileNotFoundError:
        return ModelConfig()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ModelConfigError(path, None, f"cannot be read: {error}", "TOML in UTF-8") from error
    if isinstance(values.get("labels"), str):
        are_characters = reads_characters(values.get("task"))
        values["labels"] = read_labels(path, values["labels"], are_characters=are_characters)
    if isinstance(values.get("text"), dict):
        values["text"] = with_tokenizer(path, values["text"])
    try:
        return ModelConfig.model_validate(values)
    except ValidationError as error:
        raise _combined(path, error) from error


def _combined(path: Path, error: ValidationError) -> ModelConfigError:
    """Return pydantic's errors as one, which names the key of the first and lists the others."""
    problems = []
    for item in error.errors(include_url=False):
        key = ".".join(str(part) for part in item["loc"])
        text = problem_of(item)
        if item["type"] == "extra_forbidden":
            keys = _keys(item["loc"])
            text += f"; known keys: {', '.join(keys)}{did_you_mean(str(item['loc'][-1]), keys)}"
        elif not isinstance(item["input"], dict):
            text += f", got {item['input']!r}{nearest_of(item)}"
        problems.append((key, text))
    first, rest = problems[0], problems[1:]
    others = "".join(f"\n{path}, {key}: {text}" for key, text in rest)
    return ModelConfigError(path, first[0] or None, first[1] + others)


def _keys(location: tuple[int | str, ...]) -> list[str]:
    """Return the keys that are allowed at the place of an unknown one."""
    tables: dict[str, type[TomlTable]] = {
        "image": ImageConfig,
        "text": TextConfig,
        **task_tables(),
        "scheduling": SchedulingConfig,
        "batching": BatchingConfig,
        "warm_up": WarmUpConfig,
        "traffic": TrafficConfig,
    }
    if location[:2] in _NESTED_TABLES:
        return list(_NESTED_TABLES[location[:2]].model_fields)
    if len(location) > 1 and location[0] in tables:
        return list(tables[str(location[0])].model_fields)
    plain = [name for name in ModelConfig.model_fields if name not in tables]
    return [*plain, *tables]
