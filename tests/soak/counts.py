"""What the load generator saw, and whether the server's counters say the same."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from service.scheduling.job import CallStatus
from tests.soak.case import Identity, LoadCase, ending_of
from tests.soak.wire import SoakReply

Sample = tuple[str, frozenset[tuple[str, str]]]
MAX_FAULTS = 20
"""Faults that are reported in words."""
CLIENT_LEFT = "499"


@dataclass
class LoadCounts:
    """Counts of one load generator.

    Attributes:
        endings: model -> how its calls may have ended -> how many.
        abandoned: model -> requests whose client left when their head was sent.
        statuses: status -> responses, of all requests.
        unanswered: all requests whose client left when their head was sent.
        faults: what was wrong, in words.
        fault_count: how much was wrong.
        kinds: case -> responses since the load began.
    """

    endings: dict[Identity, Counter[tuple[CallStatus, ...]]] = field(default_factory=dict)
    abandoned: Counter[Identity] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    faults: list[str] = field(default_factory=list)
    fault_count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def saw(self, case: LoadCase, reply: SoakReply) -> None:
        """Count a response and check it."""
        self.count(case.model, ending_of(reply) if case.model else (), reply.status)
        self.kinds[case.name] += 1
        self.blame(case.fault(reply))

    def count(self, model: Identity | None, endings: tuple[CallStatus, ...], status: int) -> None:
        """Count a response."""
        self.statuses[str(status)] += 1
        if model is not None:
            self.endings.setdefault(model, Counter())[endings] += 1

    def left(self, model: Identity | None) -> None:
        """Count a request whose client does not know what became of it."""
        self.unanswered += 1
        if model is not None:
            self.abandoned[model] += 1

    def blame(self, fault: str | None) -> None:
        """Note a fault, if there is one."""
        if fault is None:
            return
        self.fault_count += 1
        if len(self.faults) < MAX_FAULTS:
            self.faults.append(fault)

    def reconcile(self, metrics: str, models: Iterable[Identity]) -> None:
        """Compare with `/metrics`, of a moment when nothing was asked."""
        samples = _read(metrics)
        for model in models:
            self._reconcile_model(samples, model)
        self._reconcile_http(samples)

    def _reconcile_model(self, samples: dict[Sample, float], model: Identity) -> None:
        labels = frozenset({("model", model[0]), ("version", model[1])})
        # those whose run was observed are in an account of their own
        observed = samples["kuiper_observed_request_seconds_count", labels]
        counted = {CallStatus.SUCCESS: samples["nv_inference_request_success", labels] + observed}
        for ending in CallStatus:
            if ending is not CallStatus.SUCCESS:
                key = ("nv_inference_request_failure", labels | {("reason", ending.value)})
                counted[ending] = samples[key]
        seen = self.endings.get(model, Counter())
        slack = self.abandoned[model]
        for ending, count in counted.items():
            least = sum(number for endings, number in seen.items() if endings == (ending,))
            most = sum(number for endings, number in seen.items() if ending in endings) + slack
            self._check(f"{model[0]} version {model[1]}, {ending.value}", count, least, most)
        total = sum(counted.values())
        self._check(f"{model[0]} version {model[1]}, all", total, seen.total(), seen.total() + slack)
        pending = samples["nv_inference_pending_request_count", labels]
        self._check(f"{model[0]} version {model[1]}, waiting", pending, 0, 0)

    def _reconcile_http(self, samples: dict[Sample, float]) -> None:
        counted: Counter[str] = Counter()
        for (name, labels), value in samples.items():
            if name == "http_server_request_duration_seconds_count":
                counted[dict(labels)["http_response_status_code"]] += int(value)
        for status in {*counted, *self.statuses} - {CLIENT_LEFT}:
            seen = self.statuses[status]
            self._check(f"status {status}", counted[status], seen, seen + self.unanswered)
        self._check("status 499", counted[CLIENT_LEFT], 0, self.unanswered)
        total = self.statuses.total()
        self._check("requests", counted.total(), total, total + self.unanswered)
        self._check("status 500", counted["500"], 0, 0)
        self._check("busy workers", samples["kuiper_workers_busy", frozenset()], 0, 0)

    def _check(self, what: str, counted: float, least: int, most: int) -> None:
        if not least <= counted <= most:
            expected = str(least) if least == most else f"{least} to {most}"
            self.blame(f"/metrics counts {counted:.0f} of {what}; {expected} were seen")


def _read(metrics: str) -> dict[Sample, float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
    }
