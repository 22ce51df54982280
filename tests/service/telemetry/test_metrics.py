from collections import Counter
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from engine import Compilation, Precision
from service.config.model_config import ModelConfig
from service.context import RequestContext
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import CallStatus, Job
from service.scheduling.scheduler import Scheduler
from service.telemetry import metrics
from service.telemetry.metrics import Metrics, Snapshot, asks_for_openmetrics
from service.telemetry.request_log import RequestLog
from service.telemetry.statistics import InferenceStatistics
from tests.service.scheduling.stubs import settings_of
from tests.service.telemetry.jobs import MS, START, make_job, make_trace

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"


def loaded(name: str, version: str, refused: int = 0) -> LoadedModel:
    """Return as much of a loaded model as a snapshot looks at."""
    config = ModelConfig.model_validate({"task": "raw", "scheduling": {"queue_size": 64}})
    precisions = {"a": Precision.F32, "b": Precision.BF16, "c": Precision.BF16}
    graph = SimpleNamespace(
        verification=SimpleNamespace(refused_count=refused),
        precisions=precisions,
        compilation=Compilation(compiled=7, waiting=5, not_compiled=4),
    )
    return cast(LoadedModel, SimpleNamespace(name=name, version=version, config=config, graph=graph))


DIGITS = loaded("digits", "1", refused=2)


class BusyScheduler:
    """A scheduler whose every queue has three calls, with one worker busy."""

    def waiting(self, model: LoadedModel) -> int:
        return 3

    def busy_workers(self) -> int:
        return 1


class Server:
    """A server whose models come and go as a test wants."""

    def __init__(self, *models: LoadedModel) -> None:
        self.models = list(models)
        self.metrics = Metrics(metrics.COLLECTORS)
        self.statistics = InferenceStatistics(self.metrics.registry, clock=lambda: START + 30 * MS)
        self.request_log = RequestLog(self.metrics.registry)

    def observe(self, *records: Job[Any]) -> None:
        for record in records:
            for observer in (self.statistics, *metrics.OBSERVERS):
                observer.observe(record)

    def respond(self, method: str, route: str | None, status: int, seconds: float) -> None:
        context = cast(RequestContext, SimpleNamespace(elapsed=lambda: seconds, model=None))
        self.request_log.record(context, method, route, "/what/a/client/typed", status)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        scheduler = cast(Scheduler, BusyScheduler())
        settings = settings_of(workers=2)
        snapshot = Snapshot(self.models, scheduler, settings)
        self.statistics.keep(snapshot.identities)
        return self.metrics.render(snapshot, wants_openmetrics=asks_for_openmetrics(accept))

    def text(self, accept: str = "") -> str:
        return self.render(accept)[0].decode()

    def samples(self) -> Samples:
        families = parse_text(self.text())
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families
            for sample in family.samples
        }


def labelled(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted(labels.items()))


def of_digits(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return labelled(name, model="digits", version="1", **labels)


def test_tritons_names_carry_what_was_counted() -> None:
    server = Server(DIGITS)
    server.observe(make_job(rows=4, batch_size=4), make_job(CallStatus.REJECTED, leads_run=False))
    samples = server.samples()
    expected = {
        "nv_inference_request_success": 1,
        "nv_inference_count": 4,
        "nv_inference_exec_count": 1,
        "nv_inference_pending_request_count": 3,
        "nv_inference_request_duration_us": 20_000,
        "nv_inference_queue_duration_us": 4_000,
        "nv_inference_compute_input_duration_us": 2_000,
        "nv_inference_compute_infer_duration_us": 10_000,
        "nv_inference_compute_output_duration_us": 3_000,
    }
    assert {name: samples[of_digits(name)] for name in expected} == expected
    reasons = {
        reason: samples[of_digits("nv_inference_request_failure", reason=reason)]
        for reason in ("REJECTED", "CANCELED", "BACKEND", "OTHER")
    }
    assert reasons == {"REJECTED": 1, "CANCELED": 0, "BACKEND": 0, "OTHER": 0}


def test_histograms_are_in_seconds() -> None:
    server = Server(DIGITS)
    server.observe(make_job(trace=make_trace()))
    samples = server.samples()
    sums = {"kuiper_request_seconds": 0.02, "kuiper_queue_seconds": 0.004, "kuiper_compute_seconds": 0.01}
    for name, total in sums.items():
        assert samples[of_digits(f"{name}_sum")] == pytest.approx(total)
        assert samples[of_digits(f"{name}_count")] == 1
    assert samples[of_digits("kuiper_request_seconds_bucket", le="0.01")] == 0
    assert samples[of_digits("kuiper_request_seconds_bucket", le="0.025")] == 1
    assert samples[of_digits("kuiper_batch_size_bucket", le="1.0")] == 1
    assert samples[of_digits("kuiper_layer_seconds_count", type="nn.Conv2d")] == 2
    assert samples[of_digits("kuiper_layer_seconds_sum", type="nn.ReLU")] == pytest.approx(2e-5)


def test_state_of_the_server_is_read_when_it_is_asked_for() -> None:
    samples = Server(DIGITS).samples()
    assert samples[of_digits("kuiper_queue_capacity")] == 64
    assert samples[of_digits("kuiper_model_info", task="raw")] == 1
    assert samples[of_digits("nv_inference_pending_request_count")] == 3
    assert samples[of_digits("kuiper_program_refused_total")] == 2
    assert samples[of_digits("kuiper_program_compiled_total")] == 7
    assert samples[of_digits("kuiper_program_waiting")] == 5
    assert samples[of_digits("kuiper_program_shapes_not_compiled")] == 4
    assert samples[of_digits("kuiper_model_layers", precision="f32")] == 1
    assert samples[of_digits("kuiper_model_layers", precision="bf16")] == 2
    assert samples[labelled("kuiper_workers")] == 2
    assert samples[labelled("kuiper_workers_busy")] == 1
    assert samples[of_digits("nv_inference_request_success")] == 0
    assert any(name == "process_resident_memory_bytes" for name, _ in samples)
    assert any(name == "python_info" for name, _ in samples)
    assert any(name == "python_gc_collections_total" for name, _ in samples)


def test_http_requests_have_opentelemetrys_labels() -> None:
    server = Server()
    server.respond("GET", "/models/{name}", 200, 0.06)
    labels = {
        "http_request_method": "GET",
        "http_route": "/models/{name}",
        "http_response_status_code": "200",
    }
    samples = server.samples()
    name = "http_server_request_duration_seconds"
    assert samples[labelled(f"{name}_bucket", le="0.05", **labels)] == 0
    assert samples[labelled(f"{name}_bucket", le="0.075", **labels)] == 1
    assert samples[labelled(f"{name}_count", **labels)] == 1


def test_what_clients_type_makes_no_series() -> None:
    server = Server()
    for method in ("BREW", "get", "SPILL"):
        server.respond(method, None, 404, 0.1)
    counted = [labels for name, labels in server.samples() if name.endswith("_duration_seconds_count")]
    assert counted == [
        (("http_request_method", "_OTHER"), ("http_response_status_code", "404"), ("http_route", ""))
    ]


def test_series_of_models_that_are_gone_vanish() -> None:
    other = loaded("other", "7")
    server = Server(DIGITS, other)
    server.observe(make_job(), make_job(model="other", version="7", trace=make_trace()))
    before = server.samples()
    server.models.remove(other)
    after = server.samples()
    assert any(("model", "other") in labels for _, labels in before)
    assert not any(("model", "other") in labels for _, labels in after)
    assert after[of_digits("nv_inference_request_success")] == 1


def test_reloads_add_no_series() -> None:
    server = Server(DIGITS)
    server.observe(make_job(trace=make_trace()))
    before = server.samples().keys()
    server.models[:] = [DIGITS]
    server.observe(make_job(trace=make_trace()))
    assert server.samples().keys() == before


def test_models_that_are_not_loaded_have_no_series() -> None:
    server = Server(DIGITS)
    server.observe(make_job(model="a client's invention", version="1"))
    assert "invention" not in server.text()


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/html, */*", "text/plain; version=0.0.4; charset=utf-8"),
        (OPENMETRICS, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (
            "application/openmetrics-text;version=x.y",
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
    ],
)
def test_format_is_as_the_request_asks(accept: str, media_type: str) -> None:
    assert Server(DIGITS).render(accept)[1] == media_type


@pytest.mark.parametrize(
    ("accept", "parse"), [("", parse_text), (OPENMETRICS, parse_openmetrics)], ids=["text", "openmetrics"]
)
def test_both_formats_are_sound_and_keep_the_names(accept: str, parse: Callable[..., object]) -> None:
    server = Server(DIGITS)
    server.observe(make_job(trace=make_trace()), make_job(CallStatus.OTHER))
    server.respond("GET", None, 404, 0.06)
    families = {family.name: family for family in parse(server.text(accept))}  # type: ignore[attr-defined]
    assert {sample.name for sample in families["nv_inference_count"].samples} == {"nv_inference_count"}
    assert families["kuiper_layer_seconds"].type == "histogram"
    assert families["nv_inference_pending_request_count"].type == "gauge"


def test_every_application_has_a_registry_of_its_own() -> None:
    first, second = Server(DIGITS), Server(DIGITS)
    first.observe(make_job())
    counts = [server.samples()[of_digits("nv_inference_count")] for server in (first, second)]
    assert counts == [1, 0]


class EndingMetrics:
    """A metric from outside, which counts something that the server does not count."""

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()

    def observe(self, record: Job[Any]) -> None:
        self._calls[record.status.value] += 1

    def collect(self, snapshot: Snapshot) -> Iterator[Metric]:
        family = CounterMetricFamily("example_calls", "calls by how they ended", labels=("ending",))
        for ending, count in self._calls.items():
            family.add_metric((ending,), count)
        yield family


def test_collector_that_is_registered_counts_and_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    added = EndingMetrics()
    monkeypatch.setattr(metrics, "COLLECTORS", [*metrics.COLLECTORS, added.collect])
    monkeypatch.setattr(metrics, "OBSERVERS", [added])
    server = Server(DIGITS)
    server.observe(make_job(), make_job(), make_job(CallStatus.REJECTED))
    samples = server.samples()
    assert samples[labelled("example_calls_total", ending="SUCCESS")] == 2
    assert samples[labelled("example_calls_total", ending="REJECTED")] == 1
    assert samples[of_digits("nv_inference_request_success")] == 2
