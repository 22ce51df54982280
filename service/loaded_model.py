"""One model, ready to run."""

from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from engine import KuiperError, Port, RuntimeGraph
from engine.dtypes import PNNX_COMPUTE, Array
from engine.plan import MAX_RUN_BYTES
from service.codec import Limits
from service.model_config import ModelConfig, load_model_config
from service.model_files import ONLY_VERSION, ModelFilesError, find_files
from service.scheduling.batching import UNBATCHED, Batching, plan_batching
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
    """

    name: str
    version: str
    graph: RuntimeGraph
    config: ModelConfig
    parameter_count: int
    byte_count: int
    batching: Batching = UNBATCHED


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
) -> LoadedModel:
    """Read, build and check the model in a folder.

    Args:
        name: what to call it.
        folder: where its files are.
        limits: what a request may ask for, which the warm-up keeps to.
        warm: run it once on zeros, so that a model which cannot run is found now.
        max_run_bytes: most bytes of tensors alive at once in a run.
        version: which version the folder holds.
        config: its configuration; by default the `model.toml` in the folder.
        max_batch_size: most rows of a run that serves several requests, where the configuration does not say.
        threads: threads inside one run.
        backend: what runs the layers; None for what the environment says.

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
        threads=threads,
    )
    graph.build()
    check_model(config, graph.inputs, graph.outputs)
    if warm:
        warm_up(graph, limits)
    attributes = [attribute for operator in graph.operators for attribute in operator.attrs.values()]
    return LoadedModel(
        name,
        version,
        graph,
        config,
        parameter_count=sum(prod(attribute.shape) for attribute in attributes),
        byte_count=sum(attribute.data.nbytes for attribute in attributes),
        batching=plan_batching(graph, config, max_batch_size, limits),
    )


def warm_up(graph: RuntimeGraph, limits: Limits) -> None:
    """Run a graph once on zeros of the shapes that its file declares.

    A dimension that the file leaves open is taken as 1. A graph that does not run on that guess is not broken, and
    one that declares no shapes is not run at all.

    Raises:
        ModelFilesError: the declared inputs are larger than any request may be.
        KuiperError: the graph does not run on the very shapes that it declares.
    """
    if any(port.shape is None or port.dtype is None for port in graph.inputs):
        return
    is_guess = any(None in (port.shape or ()) for port in graph.inputs)
    if is_guess and graph.declared_plan() is None:
        return
    zeros = [_zeros(port, limits) for port in graph.inputs]
    try:
        graph.forward(zeros)
    except KuiperError:
        if not is_guess:
            raise


def _zeros(port: Port, limits: Limits) -> Array:
    shape = tuple(1 if dim is None else dim for dim in port.shape or ())
    if prod(shape) > limits.tensor_elements:
        raise ModelFilesError(
            f"input {port} has {prod(shape)} elements; at most {limits.tensor_elements} are taken "
            "(--max-tensor-elements)"
        )
    return np.zeros(shape, PNNX_COMPUTE[port.dtype or "f32"])
