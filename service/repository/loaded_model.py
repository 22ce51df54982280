"""One model, ready to run."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

from engine import RuntimeGraph
from engine.backend import PROGRAMS_KEPT
from engine.plan import MAX_RUN_BYTES
from engine.verification import Verify
from service.config.limits import Limits
from service.config.model_config import ModelConfig, load_model_config
from service.repository.batching import UNBATCHED, Batching, plan_batching
from service.repository.files import ONLY_VERSION, find_files
from service.repository.warm_shapes import count_programs, warm_shapes
from service.repository.warm_up import WarmedUp, check_shapes, warm_up
from service.tasks import check_model


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoadedModel:
    """A version of a model, loaded and built. Each load makes another, equal to none but itself.

    Attributes:
        name: what requests call it.
        version: its number, as text of digits.
        graph: its graph, built; shared by all workers.
        config: its `model.toml`.
        parameter_count: elements of all its attributes.
        byte_count: bytes of all its attributes, as stored.
        batching: whether requests for it are run together, and if not, why.
        warmed_up: what it was compiled for at load.
    """

    name: str
    version: str
    graph: RuntimeGraph
    config: ModelConfig
    parameter_count: int
    byte_count: int
    batching: Batching = UNBATCHED
    warmed_up: tuple[WarmedUp, ...] = ()


def load_model(
    name: str,
    folder: Path,
    limits: Limits,
    warm: bool,
    max_run_bytes: int = MAX_RUN_BYTES,
    *,
    version: str = ONLY_VERSION,
    config: ModelConfig | None = None,
    max_batch_size: int = 1,
    threads: int = 1,
    backend: str | None = None,
    verify: Verify | str = Verify.LOAD,
) -> LoadedModel:
    """Read, build and check the model in a folder.

    Args:
        name: what to call it.
        folder: where its files are.
        limits: what a request may ask for, which the warm-up keeps to.
        warm: compile it for the shapes that are to come and run it, so that a model which cannot run is found now.
        max_run_bytes: most bytes of tensors alive at once in a run.
        version: which version the folder holds.
        config: its configuration; by default the `model.toml` in the folder.
        max_batch_size: most rows of a run that serves several requests, where the configuration does not say.
        threads: threads inside one run.
        backend: what runs the layers; None for what the environment says.
        verify: whether compiled programs are compared with the numpy layers before they are used.

    Raises:
        ModelFilesError, ModelConfigError, KuiperError, OSError: the model is broken; the message says why.
    """
    files = find_files(folder)
    config = load_model_config(folder) if config is None else config
    graph = RuntimeGraph(
        files.param,
        files.bin,
        max_run_bytes=max_run_bytes,
        backend=backend,
        verify=verify,
        threads=threads,
        # what warm-up compiles is not to make room for another shape of it, nor at once for one that is asked for
        programs_kept=PROGRAMS_KEPT + count_programs(config, max_batch_size),
    )
    graph.build()
    check_model(config, graph.inputs, graph.outputs)
    wanted = warm_shapes(graph.inputs, config, limits) if warm else []
    known = [item.items for item in wanted if not item.has_open_items]
    batching = plan_batching(graph, config, max_batch_size, limits, known)
    # after the proof of batching, which runs shapes that no request may ever have
    warmed_up = warm_up(graph, config, limits, batching.max_batch_size) if warm else ()
    if not warm:
        check_shapes(graph, config, limits)
    attributes = [attribute for operator in graph.operators for attribute in operator.attrs.values()]
    return LoadedModel(
        name,
        version,
        graph,
        config,
        parameter_count=sum(prod(attribute.shape) for attribute in attributes),
        byte_count=sum(attribute.data.nbytes for attribute in attributes),
        batching=batching,
        warmed_up=warmed_up,
    )
