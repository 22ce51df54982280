from service.processes.backoff import FIRST_SECONDS, MOST_SECONDS, SOUND_SECONDS, Backoff


def test_waits_double_until_a_process_has_served_for_a_while() -> None:
    now = [0.0]
    backoff = Backoff(lambda: now[0])
    waits = [backoff.seconds() for _ in range(9)]
    assert waits[:4] == [0, FIRST_SECONDS, 2 * FIRST_SECONDS, 4 * FIRST_SECONDS]
    assert waits[-1] == MOST_SECONDS
    backoff.begin()
    now[0] += SOUND_SECONDS
    waits = [backoff.seconds()]
    backoff.begin()
    assert [*waits, backoff.seconds()] == [0, FIRST_SECONDS]
