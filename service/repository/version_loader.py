"""Loads one version of a model from its folder: reads its files, builds it, proves batching, compiles and runs it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from pathlib import Path
from typing import Self

from engine import MAX_RUN_BYTES, ONLY_VERSION, PROGRAMS_KEPT, KuiperError, Precision, RuntimeGraph, Verify
from service.config.limits import Limits
from service.config.model_config import ModelConfig, load_model_config
from service.config.settings import Settings
from service.repository.batching import Batching, plan_batching
from service.repository.batching_proof import RowShapes
from service.repository.files import ModelFiles, find_files
from service.repository.load_progress import Step, go_on
from service.repository.loaded_model import LoadedModel
from service.repository.row_pieces import RUN_SECONDS, RowPieces, cut_rows, expected_seconds
from service.repository.warm_up import check_shapes, warm_up
from service.repository.warm_up_shapes import batch_sizes, count_programs, input_specs, warm_up_shapes
from service.tasks import TaskModel, open_task

MAX_BUILD_SECONDS = 300.0
"""Seconds that building a model, and planning and compiling it for some shapes, may each take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """How models are loaded.

    Attributes:
        limits: what a request may ask for, which the warm-up keeps to.
        warm_up: compile the model for the shapes that are expected, and run it, so that a model which cannot run is
            found when it is loaded.
        max_run_bytes: maximum bytes of tensors alive at once during a run.
        max_build_seconds: how long building, and compiling for one combination of shapes, may each take; None for as
            long as it takes.
        max_batch_size: maximum rows of a run that serves several requests, unless the model's configuration says.
        threads: threads that each run uses, unless the model's configuration says.
        backend: what runs the layers; None for what the environment says.
        verify: whether compiled programs are compared with the reference (numpy) implementation before they are used.
        precision: what kernels round the operands of products to, unless the model's configuration says.
    """

    limits: Limits = field(default_factory=Limits)
    warm_up: bool = True
    max_run_bytes: int = MAX_RUN_BYTES
    max_build_seconds: float | None = MAX_BUILD_SECONDS
    max_batch_size: int = 1
    threads: int = 1
    backend: str | None = None
    verify: Verify | str = Verify.LOAD
    precision: Precision | str = Precision.F32

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Return the options that the server's settings stand for."""
        return cls(
            limits=settings.limits,
            warm_up=settings.warm_up,
            max_run_bytes=settings.max_run_bytes,
            max_batch_size=settings.max_batch_size,
            threads=settings.thread_count,
            backend=settings.backend,
            precision=settings.precision,
        )


def load_version(
    name: str,
    folder: Path,
    options: LoadOptions,
    *,
    version: str = ONLY_VERSION,
    config: ModelConfig | None = None,
    step: Step = go_on,
) -> LoadedModel:
    """Read, build and check the model in a folder.

    Args:
        name: the name of the model.
        folder: where its files are.
        options: how it is loaded.
        version: which version the folder holds.
        config: its configuration; by default the `model.toml` in the folder.
        step: called before each part that may take seconds.

    Raises:
        ModelFilesError, ModelConfigError, KuiperError, OSError: the model is broken; the message says why.
        LoadStoppedError: `step` raised it.
    """
    step(f"reading {name}")
    files = find_files(folder)
    config = load_model_config(folder) if config is None else config
    graph = _build(files, config, options)
    task = open_task(TaskModel(config, graph.inputs, graph.outputs, graph.operators))
    limits = options.limits
    shapes = warm_up_shapes(graph.inputs, config, limits) if options.warm_up else []
    known = [item.row_shapes for item in shapes if not item.has_open_row_dims]

    def compiling(shape: str) -> None:
        step(f"compiling {name} {shape}")

    batching = plan_batching(graph, config, options.max_batch_size, limits, known, compiling)
    batching = replace(batching, pieces=_plan_pieces(graph, config, batching, known, options))
    # after the proof of batching, which runs shapes that no request may ever have
    if options.warm_up:
        warmed_up = warm_up(graph, config, limits, batching.max_batch_size, compiling)
    else:
        check_shapes(graph, config, limits)
        warmed_up = ()
    attributes = [attribute for operator in graph.operators for attribute in operator.attrs.values()]
    return LoadedModel(
        name,
        version,
        graph,
        config,
        task,
        parameter_count=sum(prod(attribute.shape) for attribute in attributes),
        byte_count=sum(attribute.data.nbytes for attribute in attributes),
        batching=batching,
        warmed_up=warmed_up,
    )


def _plan_pieces(
    graph: RuntimeGraph,
    config: ModelConfig,
    batching: Batching,
    known: Sequence[RowShapes],
    options: LoadOptions,
) -> RowPieces | None:
    """Return into which parts many rows are cut; None where rows are not proved to be independent."""
    if batching.max_batch_size == 1:
        return None

    def seconds(rows: int) -> float:
        for shapes in known:
            try:
                specs = input_specs(graph.inputs, [(rows, *shape) for shape in shapes])
                return expected_seconds(graph.plan(specs))
            except KuiperError:
                continue
        return RUN_SECONDS * (1 + rows)

    return cut_rows(batch_sizes(config, batching.max_batch_size), seconds, options.max_run_bytes)


def _build(files: ModelFiles, config: ModelConfig, options: LoadOptions) -> RuntimeGraph:
    graph = RuntimeGraph(
        files.param,
        files.bin,
        max_run_bytes=options.max_run_bytes,
        max_build_seconds=options.max_build_seconds,
        backend=options.backend,
        verify=options.verify,
        precision=config.precision or options.precision,
        tolerance=config.tolerance,
        threads=config.scheduling.threads or options.threads,
        # room for all that the warm-up compiles, so that the first new shapes of requests displace none of it
        programs_kept=PROGRAMS_KEPT + count_programs(config, options.max_batch_size),
    )
    graph.build()
    return graph
