"""Statistics of one process among several: what it counts, all of them see; what it shows is the sum of all."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

from service.histogram import HTTP_SECONDS, LAYER_SECONDS, Histogram
from service.processes.counter_memory import CounterMemory
from service.processes.slot import Slot
from service.scheduling.record import CallRecord
from service.telemetry.counter_rows import (
    add_to_batch,
    add_to_model,
    numbers_of_batch,
    numbers_of_model,
)
from service.telemetry.http_durations import Endpoint, HttpDurations
from service.telemetry.rpc_durations import RpcDurations, RpcEnding
from service.telemetry.statistics import (
    BatchStatistics,
    Identity,
    InferenceStatistics,
    ModelStatistics,
)

_MODEL, _BATCH, _LAYER, _HTTP, _RPC = "model", "batch", "layer", "http", "rpc"
_MODEL_SIZE = len(numbers_of_model(ModelStatistics("", "")))
_BATCH_SIZE = len(numbers_of_batch(BatchStatistics()))
_LAYER_SIZE = len(Histogram(LAYER_SECONDS).numbers())
_HTTP_SIZE = len(Histogram(HTTP_SECONDS).numbers())


@dataclass(frozen=True, slots=True)
class Counters:
    """The memories of all slots.

    Attributes:
        memories: one for each slot.
        number: the slot of this process, which writes there.
    """

    memories: Sequence[CounterMemory]
    number: int

    @property
    def own(self) -> CounterMemory:
        """The memory that this process writes."""
        return self.memories[self.number]


def open_counters(slot: Slot) -> Counters:
    """Return the memories that a process has inherited."""
    return Counters([CounterMemory(descriptor) for descriptor in slot.counters], slot.number)


class ProcessStatistics(InferenceStatistics):
    """Writes each model's counters where all processes see them, before the answer is sent.

    Counters of models that are unloaded are kept: they go on when the model is loaded again.

    Args:
        counters: where all processes count.
        clock: returns nanoseconds of `perf_counter_ns`.
    """

    def __init__(self, counters: Counters, clock: Callable[[], int] = perf_counter_ns) -> None:
        super().__init__(clock)
        self._counters = counters
        for _, name, version in counters.own.groups(_MODEL):
            model = self._models[name, version] = ModelStatistics(name, version)
            _add_rows(model, counters.own)

    def observe(self, record: CallRecord) -> None:
        """Take note of a call."""
        super().observe(record)
        identity = (record.model, record.version)
        model, own = self._models[identity], self._counters.own
        own.write(((_MODEL, *identity), ""), numbers_of_model(model))
        if record.leads_run and record.timestamps.forward_end and not record.is_observed:
            self._write_run(identity, model, record)

    def of(self, name: str, version: str) -> ModelStatistics:
        """Return the statistics of a loaded model in all processes together."""
        total = ModelStatistics(name, version)
        for memory in self._counters.memories:
            _add_rows(total, memory)
        return total

    def keep(self, loaded: Collection[Identity]) -> None:
        """Drop nothing: what the other processes have counted of a model is still there as well."""

    def _write_run(self, identity: Identity, model: ModelStatistics, record: CallRecord) -> None:
        own, size = self._counters.own, max(1, record.batch_size)
        if size in model.batches:
            own.write(((_BATCH, *identity), str(size)), numbers_of_batch(model.batches[size]))
        if record.trace is not None:
            for kind in {layer.type for layer in record.trace.layers}:
                own.write(((_LAYER, *identity), kind), model.layer_seconds[kind].numbers())


class ProcessHttpDurations(HttpDurations):
    """Writes durations where all processes see them.

    Args:
        counters: where all processes count.
    """

    def __init__(self, counters: Counters) -> None:
        super().__init__()
        self._counters = counters
        self._endpoints: dict[Endpoint, Histogram] = _rows_of(_HTTP, [counters.own])

    def observe(self, method: str, route: str | None, status: int, seconds: float) -> Endpoint:
        """Count a request that was answered."""
        endpoint = super().observe(method, route, status, seconds)
        own = self._counters.own
        own.write(((_HTTP,), json.dumps(endpoint)), self._endpoints[endpoint].numbers())
        return endpoint

    def series(self) -> list[tuple[Endpoint, Histogram]]:
        """Return all durations so far, in all processes together."""
        return list(_rows_of(_HTTP, self._counters.memories).items())


class ProcessRpcDurations(RpcDurations):
    """Writes the durations of calls by gRPC where all processes see them.

    Args:
        counters: where all processes count.
    """

    def __init__(self, counters: Counters) -> None:
        super().__init__()
        self._counters = counters
        self._endings: dict[RpcEnding, Histogram] = _rows_of(_RPC, [counters.own])

    def observe(self, method: str, status: str, seconds: float) -> RpcEnding:
        """Count a call that is over."""
        ending = super().observe(method, status, seconds)
        self._counters.own.write(((_RPC,), json.dumps(ending)), self._endings[ending].numbers())
        return ending

    def series(self) -> list[tuple[RpcEnding, Histogram]]:
        """Return all durations so far, in all processes together."""
        return list(_rows_of(_RPC, self._counters.memories).items())


def _add_rows(model: ModelStatistics, memory: CounterMemory) -> None:
    """Add what one process has counted of a model."""
    identity = (model.name, model.version)
    if (numbers := memory.row(((_MODEL, *identity), ""), _MODEL_SIZE)) is not None:
        add_to_model(model, numbers)
    for size in memory.members((_BATCH, *identity)):
        if (numbers := memory.row(((_BATCH, *identity), size), _BATCH_SIZE)) is not None:
            add_to_batch(model.batches.setdefault(int(size), BatchStatistics()), numbers)
    for kind in memory.members((_LAYER, *identity)):
        if (numbers := memory.row(((_LAYER, *identity), kind), _LAYER_SIZE)) is not None:
            model.layer_seconds.setdefault(kind, Histogram(LAYER_SECONDS)).add(numbers)


def _rows_of(kind: str, memories: Sequence[CounterMemory]) -> dict[Any, Histogram]:
    """Return the histograms of a group of rows, by what their names stand for: tuples of text."""
    found: dict[Any, Histogram] = {}
    for memory in memories:
        for member in memory.members((kind,)):
            if (numbers := memory.row(((kind,), member), _HTTP_SIZE)) is not None:
                found.setdefault(tuple(json.loads(member)), Histogram(HTTP_SECONDS)).add(numbers)
    return found
