"""Which runs are sampled."""

from typing import Any

from service.scheduling.queue import TraceSetting


def setting_of(rate: int, **values: Any) -> TraceSetting:
    setting = TraceSetting.of_server(rate)
    setting.values.update({f"trace_{name}": value for name, value in values.items()})
    return setting


def samples(setting: TraceSetting, runs: int) -> list[int]:
    return [run for run in range(1, runs + 1) if setting.sample()]


def test_every_nth_run_is_traced() -> None:
    assert samples(setting_of(3), 10) == [3, 6, 9]


def test_none_is_traced_at_rate_0_or_level_off() -> None:
    assert samples(setting_of(0), 5) == []
    assert samples(setting_of(1, level="OFF"), 5) == []


def test_count_ends_it() -> None:
    setting = setting_of(2, count=2)
    assert samples(setting, 10) == [2, 4]
    assert setting.values["trace_count"] == 0


def test_model_follows_the_server_in_what_it_does_not_set() -> None:
    server = setting_of(1)
    model = server.for_model()
    assert dict(model.values) == {"trace_level": "TIMESTAMPS", "trace_rate": 1, "trace_count": -1}
    server.values["trace_rate"] = 2
    assert samples(model, 4) == [2, 4]
    model.values["trace_rate"] = 1
    server.values["trace_level"] = "OFF"
    assert samples(model, 4) == []
    model.values["trace_level"] = "TIMESTAMPS"
    assert samples(model, 2) == [1, 2]
    assert samples(server.for_model(), 2) == []


def test_count_of_the_server_is_shared() -> None:
    server = setting_of(1, count=3)
    first, second = server.for_model(), server.for_model()
    assert (samples(first, 2), samples(second, 2)) == ([1, 2], [1])
    first.values["trace_count"] = 1
    assert (samples(first, 2), server.values["trace_count"]) == ([1], 0)
