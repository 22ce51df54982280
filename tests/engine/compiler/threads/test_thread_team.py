"""Teams work together, sleep between runs, and leave nothing behind: no thread, no hang, no crash."""

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from engine.compiler.threads.runner import runner
from engine.compiler.threads.segment import NativeStep, Segment
from engine.compiler.threads.thread_team import ThreadTeam, ThreadTeamPool
from tests.engine.compiler.tiny import PERIOD, Meeting, Work, compiled, table, wait_until

TASKS = Path("/proc/self/task")
sees_threads = pytest.mark.skipif(not TASKS.exists(), reason="the system does not list threads as files")


@pytest.fixture
def pool() -> Iterator[ThreadTeamPool]:
    pool = ThreadTeamPool()
    yield pool
    pool.close()


def tasks() -> set[str]:
    return {task.name for task in TASKS.iterdir()}


def meet(team: ThreadTeam, threads: int) -> None:
    """Come back once that many threads have met in a step."""
    arrived, numbers = np.zeros(1, np.int64), np.full(threads, -1, np.int64)
    addresses = table([arrived, numbers])
    segment = Segment([NativeStep(compiled(Meeting(threads)), 0, threads)])
    assert team.run(segment, addresses.ctypes.data) == 1
    assert arrived[0] == threads
    assert sorted(numbers) == list(range(threads))


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_all_of_a_team_work_at_the_same_time(threads: int, pool: ThreadTeamPool) -> None:
    with pool.lease(threads) as team:
        assert team.threads == threads
        for _ in range(5):
            meet(team, threads)


def test_runs_at_the_same_time_have_different_teams(pool: ThreadTeamPool) -> None:
    with pool.lease(2) as one, pool.lease(2) as other:
        assert one is not other


def test_teams_are_used_again(pool: ThreadTeamPool) -> None:
    with pool.lease(2) as first:
        pass
    with pool.lease(2) as second:
        assert second is first
    with pool.lease(3) as third:
        assert third is not first


def test_a_team_comes_back_after_an_error(pool: ThreadTeamPool) -> None:
    with pytest.raises(KeyError), pool.lease(2) as first:
        raise KeyError
    with pool.lease(2) as second:
        assert second is first


@sees_threads
def test_there_are_never_more_teams_than_runs_at_once(pool: ThreadTeamPool) -> None:
    before = tasks()
    for _ in range(20):
        with pool.lease(2) as team:
            meet(team, 2)
    assert len(tasks() - before) == 1


@sees_threads
def test_no_thread_is_left_after_a_close(pool: ThreadTeamPool) -> None:
    before = tasks()
    with pool.lease(4) as team:
        meet(team, 4)
        assert len(tasks() - before) == 3
    pool.close()
    wait_until(lambda: tasks() <= before)


def test_a_closed_team_works_alone() -> None:
    team = ThreadTeam(2)
    team.close()
    team.close()
    assert team.threads == 1
    work = Work([4, 4])
    tables = work.tables()
    assert team.run(work.segment, tables.address) == 2
    tables.check(2)


def test_a_closed_team_keeps_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that compile the runner at the same time have one each, of which others know only the last."""
    native = runner.__wrapped__()
    code = weakref.ref(native.code)
    monkeypatch.setattr("engine.compiler.threads.thread_team.runner", [native].pop)
    del native
    team = ThreadTeam(1)
    monkeypatch.undo()
    team.close()
    gc.collect()
    assert code() is not None
    meet(team, 1)


def test_a_team_makes_do_with_the_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    calls = iter(range(10))

    def start_one(thread: threading.Thread) -> None:
        if next(calls):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_one)
    team = ThreadTeam(4)
    assert team.threads == 2
    meet(team, 2)
    team.close()


def switches(task: str) -> str:
    """Return how often a thread gave its core up or lost it, and its state."""
    lines = (TASKS / task / "status").read_text().splitlines()
    return " ".join(line for line in lines if "ctxt_switches" in line or line.startswith("State"))


@sees_threads
def test_helpers_sleep_between_runs(pool: ThreadTeamPool) -> None:
    before = tasks()
    with pool.lease(3) as team:
        meet(team, 3)
        helpers = sorted(tasks() - before)
        assert len(helpers) == 2

        wait_until(lambda: all("S (sleeping)" in switches(task) for task in helpers))
        asleep = [switches(task) for task in helpers]
        # work that is not theirs does not wake them
        work = Work([1, 1])
        tables = work.tables()
        for _ in range(1000):
            team.run(work.segment, tables.address)
        assert [switches(task) for task in helpers] == asleep
        meet(team, 3)
        assert [switches(task) for task in helpers] != asleep


def test_many_teams_at_once_on_few_cores(pool: ThreadTeamPool) -> None:
    work = Work([4, 1, 9] * 20)

    def run(_: int) -> None:
        tables = work.tables()
        with pool.lease(4) as team:
            assert team.run(work.segment, tables.address) == 60
        tables.check(60)

    with ThreadPoolExecutor(8) as executor:
        assert len(list(executor.map(run, range(50)))) == 50


SCRIPT = """
import os, sys, threading
import numpy as np
from engine.compiler.threads.segment import NativeStep, Segment
from engine.compiler.threads.thread_team import teams
from tests.engine.compiler.tiny import Gate, Work, compiled, table, wait_until

work = Work([4, 4])

def run(team):
    tables = work.tables()
    assert team.run(work.segment, tables.address) == 2
    tables.check(2)

def in_child(check):
    child = os.fork()
    if not child:
        try:
            check()
        except BaseException as error:
            print(error, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""

AT_EXIT = {
    "a team sleeps": """
with teams.lease(3) as team:
    run(team)
""",
    "a team is lent": """
team = teams.lease(3).__enter__()
run(team)
""",
    "a team is at work for a daemon thread": """
words = np.zeros(2, np.int64)
addresses = table([words])
segment = Segment([NativeStep(compiled(Gate(chunks=2)), 0, 2)])

def wait():
    with teams.lease(2) as team:
        team.run(segment, addresses.ctypes.data)

threading.Thread(target=wait, daemon=True).start()
wait_until(lambda: bool(words[0]))
""",
}

AT_FORK = {
    "the child has a team that is idle": """
with teams.lease(3) as team:
    run(team)

def check():
    with teams.lease(3) as other:
        assert other is not team
        assert other.threads == 3
        run(other)
    teams.close()

in_child(check)
with teams.lease(3) as again:
    assert again is team
    run(again)
""",
    "the child goes on with a team that is lent": """
with teams.lease(3) as team:
    run(team)

    def check():
        assert team.threads == 1
        run(team)
        team.close()

    in_child(check)
    assert team.threads == 3
    run(team)
""",
    "the child leaves the block that it was forked in": """
def check():
    with teams.lease(2) as team:
        run(team)

with teams.lease(2) as team:
    child = os.fork()
if not child:
    check()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
check()
""",
    "another thread runs all the while": """
with teams.lease(1) as team:
    run(team)  # LLVM is at work for the first one, and does not stand a fork in the midst of it
done = threading.Event()

def keep_running():
    while not done.is_set():
        with teams.lease(2) as team:
            run(team)

def check():
    with teams.lease(2) as team:
        run(team)

thread = threading.Thread(target=keep_running)
thread.start()
for _ in range(20):
    in_child(check)
done.set()
thread.join()
""",
}


def run_script(body: str) -> None:
    """Run a script in a process of its own; it must end by itself, and well.

    Its coverage is not measured: that has a lock, which a thread may hold just when another one forks.
    """
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT + body]
    root = Path(__file__).parents[4]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    ended = subprocess.run(
        command, cwd=root, env=environment, timeout=PERIOD, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr


@pytest.mark.parametrize("body", AT_EXIT.values(), ids=AT_EXIT)
def test_the_interpreter_ends_while(body: str) -> None:
    run_script(body)


@pytest.mark.skipif(sys.platform == "win32", reason="the system does not fork")
@pytest.mark.parametrize("body", AT_FORK.values(), ids=AT_FORK)
def test_forks(body: str) -> None:
    run_script(body)
