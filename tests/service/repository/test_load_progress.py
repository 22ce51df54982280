import threading

import pytest

from service.repository.load_progress import LoadProgress, LoadState, LoadStoppedError, go_on


def test_state_is_reported_in_words() -> None:
    assert str(LoadState(0, None, ())) == ""
    assert str(LoadState(17, 17, ())) == "17 of 17 models"
    assert str(LoadState(3, 17, ("compiling digits batch 8",))) == "3 of 17 models, compiling digits batch 8"


def test_step_that_has_taken_longest_is_the_first() -> None:
    seen: list[str] = []
    progress = LoadProgress(lambda state: seen.append(str(state)))
    progress.expect(3)
    go_on_loading = threading.Event()

    def load(*steps: str) -> None:
        for step in steps:
            progress.step(step)
        taken.release()
        assert go_on_loading.wait(20)
        progress.loaded_one()

    threads, taken = [], threading.Semaphore(0)
    for steps in (["a", "b"], ["c"]):
        threads.append(threading.Thread(target=load, args=steps))
        threads[-1].start()
        assert taken.acquire(timeout=20)
    assert progress.state == LoadState(0, 3, ("b", "c"))
    go_on_loading.set()
    for thread in threads:
        thread.join()
    assert progress.state == LoadState(2, 3, ())
    assert seen[:2] == ["0 of 3 models", "0 of 3 models, a"]
    assert seen[-1] == "2 of 3 models"


def test_reports_of_several_threads_are_in_order() -> None:
    seen: list[int] = []
    is_reporting, go_on_reporting = threading.Event(), threading.Event()

    def watch(state: LoadState) -> None:
        if state.loaded == 1:
            is_reporting.set()
            assert go_on_reporting.wait(20)
        seen.append(state.loaded)

    progress = LoadProgress(watch)
    first, second = (threading.Thread(target=progress.loaded_one) for _ in range(2))
    first.start()
    assert is_reporting.wait(20)
    second.start()
    second.join(0.05)  # enough to report out of order
    go_on_reporting.set()
    for thread in (first, second):
        thread.join()
    assert seen == [1, 2]


def test_stop_ends_loads_before_their_next_steps() -> None:
    progress = LoadProgress()
    progress.step("a")
    progress.check()
    progress.stop()
    for call in (progress.step, progress.check):
        with pytest.raises(LoadStoppedError):
            call("b")
    assert progress.state.steps == ("a",)
    go_on("c")


def test_what_is_waited_for_is_reported_until_an_attempt_gets_further() -> None:
    seen: list[str] = []
    progress = LoadProgress(lambda state: seen.append(str(state)))
    for _ in range(2):
        progress.wait("the store is gone", 0.0)
        progress.step("listing models")
    progress.step("fetching a")
    attempt = ["the store is gone", "the store is gone; listing models"]
    assert seen == [*attempt, *attempt, "fetching a"]
