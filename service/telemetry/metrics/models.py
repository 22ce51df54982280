"""The loaded models: what they are, how many requests wait for them, and what came of their programs."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from service.graph.view import count_precisions
from service.scheduling.policy import scheduling_policy
from service.telemetry.metrics.collector import Snapshot, counter, gauge
from service.telemetry.statistics import MODEL_LABELS


def collect_models(snapshot: Snapshot) -> Iterator[Metric]:
    """Yield what is loaded: queues, tasks, precisions of layers, programs."""
    models = {(model.name, model.version): model for model in snapshot.models}
    settings = snapshot.settings
    yield counter(
        "kuiper_program_refused",
        "compiled programs that are not used, because they differ from numpy or the compiler failed",
        {labels: model.graph.verification.refused_count for labels, model in models.items()},
        MODEL_LABELS,
    )
    yield counter(
        "kuiper_program_compiled",
        "programs compiled, at load and in the background",
        {labels: model.graph.compilation.compiled for labels, model in models.items()},
        MODEL_LABELS,
    )
    yield gauge(
        "kuiper_program_waiting",
        "shapes of requests waiting for the compiler or for memory",
        {labels: model.graph.compilation.waiting for labels, model in models.items()},
        MODEL_LABELS,
    )
    yield gauge(
        "kuiper_program_shapes_not_compiled",
        "shapes of recent requests that were too seldom or too quick in numpy for a program to be compiled",
        {labels: model.graph.compilation.not_compiled for labels, model in models.items()},
        MODEL_LABELS,
    )
    yield gauge(
        "nv_inference_pending_request_count",
        "requests that wait for the model",
        {labels: snapshot.scheduler.waiting(model) for labels, model in models.items()},
        MODEL_LABELS,
    )
    yield gauge(
        "kuiper_queue_capacity",
        "requests that may wait for the model",
        {labels: scheduling_policy(one.config, settings).queue_size for labels, one in models.items()},
        MODEL_LABELS,
    )
    yield gauge(
        "kuiper_model_info",
        "1 for each loaded model",
        {(*labels, model.config.task): 1 for labels, model in models.items()},
        (*MODEL_LABELS, "task"),
    )
    yield gauge(
        "kuiper_model_layers",
        "operators of the model by the precision that they are computed in",
        {
            (*labels, precision): count
            for labels, model in models.items()
            for precision, count in count_precisions(model.graph).items()
        },
        (*MODEL_LABELS, "precision"),
    )
