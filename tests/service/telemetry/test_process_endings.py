from service.processes.counter_memory import CounterMemory, make_counter_memory
from service.telemetry.process_endings import ProcessEndings
from service.telemetry.process_statistics import Counters


def test_all_processes_count_together_and_go_on_after_an_end() -> None:
    descriptors = [make_counter_memory() for _ in range(2)]

    def start(number: int) -> ProcessEndings:
        return ProcessEndings(Counters([CounterMemory(descriptor) for descriptor in descriptors], number))

    first, second = start(0), start(1)
    assert first.of("m", "1") == (0, 0)
    first.observe("m", "1", is_answered=True)
    second.observe("m", "1", is_answered=False)
    second.observe("m", "2", is_answered=True)
    for one in (first, second):
        assert (one.of("m", "1"), one.of("m", "2")) == ((2, 1), (1, 0))
    again = start(1)
    again.observe("m", "1", is_answered=True)
    assert first.of("m", "1") == again.of("m", "1") == (3, 1)
