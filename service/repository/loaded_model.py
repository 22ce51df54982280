"""One version of a model, ready to run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import RuntimeGraph
from service.config.model_config import ModelConfig
from service.repository.batching import UNBATCHED, Batching
from service.repository.warm_up import WarmUpResult
from service.tasks import Task

if TYPE_CHECKING:
    from service.tasks.pipeline import StepConfig


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a pipeline.

    Attributes:
        config: what it takes.
        model: the model that it runs.
    """

    config: "StepConfig"
    model: "LoadedModel"


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoadedModel:
    """A version of a model, loaded and built. Each load makes a new one, which is equal only to itself.

    Attributes:
        name: the name by which requests ask for it.
        version: its number, as digits.
        graph: its graph, built; shared by all workers.
        config: its `model.toml`.
        task: what its outputs mean.
        parameter_count: number of elements of all its attributes.
        byte_count: number of bytes of all its attributes, as stored.
        batching: whether requests for it are run together, and if not, why.
        warmed_up: what it was compiled for when it was loaded.
        steps: the models that a pipeline runs, in order; empty for all other models.
    """

    name: str
    version: str
    graph: RuntimeGraph
    config: ModelConfig
    task: Task
    parameter_count: int
    byte_count: int
    batching: Batching = UNBATCHED
    warmed_up: tuple[WarmUpResult, ...] = ()
    steps: tuple[Step, ...] = ()
