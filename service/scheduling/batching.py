"""Whether the requests for a model are run together."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine import RuntimeGraph, TensorSpec
from engine.dtypes import PNNX_COMPUTE
from service.codec import Limits
from service.model_config import ModelConfig
from service.scheduling.batch_proof import find_obstacle
from service.scheduling.batch_rule import run_sizes


@dataclass(frozen=True, slots=True)
class Batching:
    """What was found out about a model when it was loaded.

    Attributes:
        max_batch_size: most items (rows) of a run that serves several requests; 1 where each is run on its own.
        refusal: why it is 1 although more was asked for; None unless it was.
    """

    max_batch_size: int = 1
    refusal: str | None = None

    @property
    def is_on(self) -> bool:
        """Whether requests are run together."""
        return self.max_batch_size > 1


UNBATCHED = Batching()


def plan_batching(graph: RuntimeGraph, config: ModelConfig, default_size: int, limits: Limits) -> Batching:
    """Prove that a model's graph can run requests together, where its configuration wants that.

    Args:
        graph: the graph, built.
        config: the model's `model.toml`.
        default_size: `max_batch_size` of models that do not say.
        limits: what a request may ask for; nothing larger is tried.
    """
    wanted = config.batching.max_batch_size or default_size
    if wanted == 1:
        return UNBATCHED
    refusal = find_obstacle(graph, wanted, limits)
    if refusal is not None:
        return Batching(refusal=refusal)
    _prepare(graph, (*run_sizes(wanted), *config.batching.preferred_batch_sizes))
    return Batching(wanted)


def _prepare(graph: RuntimeGraph, sizes: Sequence[int]) -> None:
    """Have a graph compiled for the batches that are to come, where its file declares the shape of an item."""
    if any(port.shape is None or port.dtype is None or None in port.shape[1:] for port in graph.inputs):
        return
    for size in dict.fromkeys(sizes):
        graph.prepare(
            [
                TensorSpec(
                    (size, *(dim or 1 for dim in (port.shape or ())[1:])), PNNX_COMPUTE[port.dtype or "f32"]
                )
                for port in graph.inputs
            ]
        )
