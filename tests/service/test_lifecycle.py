from service.lifecycle import Lifecycle, Phase


def test_phases_follow_each_other() -> None:
    lifecycle = Lifecycle()
    phases = [lifecycle.phase]
    lifecycle.started()
    phases.append(lifecycle.phase)
    lifecycle.leave()
    phases.append(lifecycle.phase)
    lifecycle.drain()
    phases.append(lifecycle.phase)
    assert phases == [Phase.STARTING, Phase.READY, Phase.LEAVING, Phase.DRAINING]


def test_signal_during_start_up_is_not_forgotten() -> None:
    lifecycle = Lifecycle()
    lifecycle.drain()
    lifecycle.started()
    assert lifecycle.phase is Phase.DRAINING


def test_accepted_requests_are_counted_until_they_end() -> None:
    lifecycle = Lifecycle()
    lifecycle.begin_request()
    lifecycle.begin_request()
    assert lifecycle.accepted == 2
    lifecycle.end_request()
    assert lifecycle.accepted == 1
    lifecycle.end_request()
    assert lifecycle.accepted == 0
