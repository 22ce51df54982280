"""What a model is compared with: another version, or its own files on another backend or in another precision."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from engine import KuiperError, RuntimeGraph, RuntimeOperator
from service.config.settings import Settings
from service.errors import ServiceError
from service.repository.loaded_model import LoadedModel
from service.repository.version_loader import MAX_BUILD_SECONDS


@dataclass(frozen=True, slots=True)
class Variant:
    """A graph to compare with.

    Attributes:
        label: what it is, for people.
        graph: the graph, built.
    """

    label: str
    graph: RuntimeGraph


def build_variant(
    model: LoadedModel, settings: Settings, *, backend: str | None = None, precision: str | None = None
) -> Variant:
    """Build a model once more from its files.

    Args:
        model: the model.
        settings: those of the server.
        backend: what runs it; by default what runs the models of the server.
        precision: what it computes in; by default f32.

    Raises:
        ServiceError: 422 `comparison_failed`: it cannot be built so; 409 `model_changed`: its files are others by now.
    """
    graph = model.graph
    try:
        other = RuntimeGraph(
            graph.param_path,
            graph.bin_path,
            backend=backend or settings.backend,
            precision=precision or "f32",
            threads=model.config.scheduling.threads or settings.thread_count,
            max_run_bytes=settings.max_run_bytes,
            max_build_seconds=MAX_BUILD_SECONDS,
            tolerance=model.config.tolerance,
        )
        other.build()
    except (KuiperError, OSError) as error:
        # clients must not learn where the server keeps its files
        reason = str(error).replace(f"{graph.param_path.parent}{os.sep}", "")
        raise ServiceError(
            422, "comparison_failed", f"model {model.name!r} cannot be built: {reason}", {"reason": reason}
        ) from error
    if not _are_same(graph.operators, other.operators):
        message = f"the files of model {model.name!r} have changed since it was loaded; load it again"
        raise ServiceError(409, "model_changed", message, {"model": model.name, "version": model.version})
    label = f"backend {backend}" if backend is not None else f"precision {precision}"
    return Variant(f"{model.name}, version {model.version}, {label}", other)


def _are_same(ours: Sequence[RuntimeOperator], others: Sequence[RuntimeOperator]) -> bool:
    return len(ours) == len(others) and all(
        one.name == other.name and one.type == other.type and one.attrs == other.attrs
        for one, other in zip(ours, others, strict=True)
    )
