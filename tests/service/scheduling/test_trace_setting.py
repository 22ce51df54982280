"""Which runs are sampled."""

from service.scheduling.trace_setting import TraceMode, TraceSetting


def samples(setting: TraceSetting, runs: int) -> list[int]:
    return [run for run in range(1, runs + 1) if setting.sample()]


def test_every_nth_run_is_traced() -> None:
    assert samples(TraceSetting(3), 10) == [3, 6, 9]


def test_none_is_traced_at_rate_0_or_level_off() -> None:
    assert samples(TraceSetting(0), 5) == []
    assert samples(TraceSetting(1, TraceMode.OFF), 5) == []


def test_count_ends_it() -> None:
    setting = TraceSetting(2, count=2)
    assert samples(setting, 10) == [2, 4]
    assert setting.count == 0


def test_model_follows_the_server_in_what_it_does_not_set() -> None:
    server = TraceSetting(1)
    model = server.for_model()
    assert (model.level, model.rate, model.count) == (TraceMode.TIMESTAMPS, 1, -1)
    server.own_rate = 2
    assert samples(model, 4) == [2, 4]
    model.own_rate = 1
    server.own_level = TraceMode.OFF
    assert samples(model, 4) == []
    model.own_level = TraceMode.TIMESTAMPS
    assert samples(model, 2) == [1, 2]
    assert samples(server.for_model(), 2) == []


def test_count_of_the_server_is_shared() -> None:
    server = TraceSetting(1, count=3)
    first, second = server.for_model(), server.for_model()
    assert (samples(first, 2), samples(second, 2)) == ([1, 2], [1])
    first.own_count = 1
    assert (samples(first, 2), server.count) == ([1], 0)
