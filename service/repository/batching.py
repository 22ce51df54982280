"""Whether requests for a model are run together."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine import RuntimeGraph
from service.config.limits import Limits
from service.config.model_config import ModelConfig
from service.repository.batching_proof import RowShapes, find_obstacle
from service.repository.load_progress import Step, go_on
from service.repository.row_pieces import RowPieces


@dataclass(frozen=True, slots=True)
class Batching:
    """Whether requests for a model are run together, as found out when it was loaded.

    Attributes:
        max_batch_size: maximum rows of a run that serves several requests; 1 if every request runs on its own.
        refusal: why it is 1 although the configuration asks for more; None otherwise.
        pieces: how rows are run in parts, where programs are compiled for those only; None where they are not.
    """

    max_batch_size: int = 1
    refusal: str | None = None
    pieces: RowPieces | None = None


UNBATCHED = Batching()


def run_sizes(max_size: int) -> list[int]:
    """Return the batch sizes that are used: the powers of two below the largest size, and that size."""
    return [*(1 << power for power in range(max_size.bit_length()) if 1 << power < max_size), max_size]


def plan_batching(
    graph: RuntimeGraph,
    config: ModelConfig,
    default_size: int,
    limits: Limits,
    known: Sequence[RowShapes] = (),
    step: Step = go_on,
) -> Batching:
    """Prove that a model's graph can run requests together, if its configuration asks for that.

    Args:
        graph: the graph, built.
        config: the model's `model.toml`.
        default_size: `max_batch_size` of models whose configuration sets none.
        limits: what a request may ask for; nothing larger is tried.
        known: row shapes that requests are expected to have; they are tried first.
        step: called with the number of rows that are tried next, as "batch 8".

    Raises:
        LoadStoppedError: `step` raised it.
    """
    wanted = config.batching.max_batch_size or default_size
    if wanted == 1:
        return UNBATCHED
    refusal = find_obstacle(graph, wanted, limits, known, step)
    if refusal is not None:
        return Batching(refusal=refusal)
    return Batching(wanted)
