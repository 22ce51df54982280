"""Pipelines of the repository: made of the models that are served now, again whenever one of these changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from engine import StepsGraph
from service.config.model_config import FILE_NAME, ModelConfig, ModelConfigError
from service.errors import ServiceError, did_you_mean
from service.repository.loaded_model import LoadedModel, Step
from service.repository.model_entry import ModelEntry
from service.tasks import TaskModel
from service.tasks.pipeline import Pipeline, PipelineConfig, StepConfig

_FOREIGN_KEYS = ("image", "text", "precision", "tolerance", "batching", "warm_up")
"""Keys of `model.toml` that are those of the steps' models."""


def make_versions(entry: ModelEntry, entries: Mapping[str, ModelEntry]) -> ModelEntry:
    """Return the entry of a pipeline with the versions that can be made; it says why others cannot.

    Args:
        entry: the pipeline; versions whose steps are what they were are kept.
        entries: all models by name.
    """
    versions: dict[str, LoadedModel] = {}
    failures: dict[str, str] = {}
    for version, (folder, config) in entry.pipelines.items():
        old, wanted = entry.versions.get(version), config.task_table(PipelineConfig).steps
        try:
            steps = tuple(Step(step, _find(step, place, entries)) for place, step in enumerate(wanted))
            is_same = old is not None and [step.model for step in old.steps] == [step.model for step in steps]
            versions[version] = old if old and is_same else _make(entry.name, version, folder, config, steps)
        except ModelConfigError as error:
            failures[version] = str(error)
    rest = {key: reason for key, reason in entry.unavailable.items() if key not in entry.pipelines}
    return replace(entry, versions=versions, unavailable=rest | failures)


def _make(name: str, version: str, folder: Path, given: ModelConfig, steps: tuple[Step, ...]) -> LoadedModel:
    first, tasks = steps[0].model, {step.config.name: step.model.task for step in steps}
    config = given.model_copy(update={"image": first.config.image, "text": first.config.text})
    task = Pipeline(TaskModel(config, first.graph.inputs, ()), list(tasks.values()))
    _check(given, steps)
    config = config.model_copy(update={"labels": tasks[task.shown].model.config.labels})
    graphs = {step.config.name: step.model.graph for step in steps}
    graph = StepsGraph(folder / FILE_NAME, graphs, dict(_links(steps, task)))
    return LoadedModel(name, version, graph, config, task, 0, 0, steps=steps)


def _find(step: StepConfig, place: int, entries: Mapping[str, ModelEntry]) -> LoadedModel:
    """Return the model of a step.

    Raises:
        ModelConfigError: it does not exist, is not served, or is a pipeline itself.
    """
    entry, key = entries.get(step.model), f"pipeline.steps.{place}.model"
    if entry is None:
        known = [name for name, other in entries.items() if not other.pipelines]
        expected = f"one of {', '.join(known)}{did_you_mean(step.model, known)}"
        raise ModelConfigError(FILE_NAME, key, f"is {step.model!r}, which does not exist", expected)
    if entry.pipelines:
        raise ModelConfigError(FILE_NAME, key, f"is {step.model!r}, a pipeline", "a model with weights")
    try:
        return entry.find(step.version)
    except ServiceError as error:
        problem = f"is {step.model!r}, which step {step.name!r} cannot use: {error.message}"
        raise ModelConfigError(FILE_NAME, key, problem) from error


def _check(config: ModelConfig, steps: Sequence[Step]) -> None:
    """Check that the file has no keys of the steps' models, and that those on crops take any number of them at once."""
    for key in _FOREIGN_KEYS:
        if getattr(config, key) != ModelConfig.model_fields[key].default:
            raise ModelConfigError(FILE_NAME, key, "is given for a pipeline", "it in the model of a step")
    if config.traffic is not None and config.traffic.shadow is not None:
        raise ModelConfigError(FILE_NAME, "traffic.shadow", "is given for a pipeline", "weights only")
    for place, step in enumerate(steps):
        if step.config.crops is None or step.model.batching.max_batch_size > 1:
            continue
        (port,) = step.model.graph.inputs
        if port.shape is not None and (len(port.shape) != 4 or port.shape[0] is not None):
            key, expected = (
                f"pipeline.steps.{place}.model",
                "a dynamic batch dimension, as all crops are a batch",
            )
            problem = f"is {step.config.model!r}, whose input {port} has a fixed batch size"
            raise ModelConfigError(FILE_NAME, key, problem, expected)


def _links(steps: Sequence[Step], task: Pipeline) -> Iterator[tuple[str, list[str]]]:
    """Yield each input of a later step, and the operands that it is made of."""
    first, *rest = steps
    outputs = {step.config.name: step.model.graph.outputs for step in steps}
    picture = [f"{first.config.name}/{port.operand}" for port in first.model.graph.inputs[:1]]
    for config, graph in ((step.config, step.model.graph) for step in rest):
        for port in graph.inputs:
            sources = [name for name in (config.crops, config.upright) if name is not None]
            made_of = picture + [f"{name}/{output.operand}" for name in sources for output in outputs[name]]
            if config.tensors is not None:
                source, place = task.outputs[config.tensors[port.operator]]
                made_of = [f"{source}/{outputs[source][place].operand}"]
            yield f"{config.name}/{port.operand}", made_of
