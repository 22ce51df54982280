"""The runner's code on threads that take turns at random: each chunk once, in order, no race, nobody left asleep."""

import random
from collections.abc import Iterator

import pytest
from llvmlite import ir

from engine.compiler.threads import runner
from engine.compiler.threads.runner import ENDED, INDEX, STATE, TEAM_WORDS
from engine.run.stop import NEVER
from tests.engine.compiler.threads.interleaved import Machine, Turns

TEAM, STOP, ROWS, KERNEL = 1 << 20, 2 << 20, 3 << 20, 5


class Runs:
    """Runs of one team, one after the other, and what is wrong with them.

    Args:
        module: the runner's code.
        seed: of all choices.
    """

    def __init__(self, module: ir.Module, seed: int) -> None:
        self._choices = random.Random(seed)
        self._machine = Machine(module, {KERNEL: self._chunk}, self._choices)
        self._members = self._choices.choice((1, 2, 2, 3, 3, 4))
        self._runs = [self._steps() for _ in range(self._choices.choice((1, 2, 3)))]
        self._begun: list[list[int]] = []
        self._ended: list[list[int]] = []
        self._numbers: set[int] = set()

    def check(self) -> None:
        """Run all of them."""
        words = [0] * TEAM_WORDS
        words[STATE], words[INDEX] = ENDED, 1
        self._machine.allocate(TEAM, words)
        self._machine.allocate(STOP, [0, NEVER])
        self._machine.start(self._caller)
        self._machine.start(self._stopper)
        self._machine.run()

    def _steps(self) -> list[int]:
        return self._choices.choices((1, 2, 3, 5), k=self._choices.choice((1, 2, 3)))

    def _caller(self, thread: int) -> Turns:
        machine = self._machine
        for _ in range(self._members - 1):
            machine.start(self._helper, thread)
            yield
        for chunks in self._runs:
            self._begun, self._ended = ([[0] * count for count in chunks] for _ in range(2))
            machine.allocate(
                ROWS, [word for step, count in enumerate(chunks) for word in (KERNEL, step, count)]
            )
            stop = self._choices.choice((0, STOP))
            done = yield from machine.call(thread, "together", ROWS, len(chunks), 0, 0, stop, TEAM)
            assert stop or done == len(chunks)
            assert self._ended == [[int(step < done)] * count for step, count in enumerate(chunks)]
            machine.free(thread, ROWS, 3 * len(chunks))
        yield from machine.call(thread, "dismiss", TEAM)
        return 0

    def _helper(self, thread: int) -> Turns:
        return self._machine.call(thread, "help", TEAM)

    def _stopper(self, thread: int) -> Turns:
        for _ in range(self._choices.choice((50, 500, 5000))):
            yield
        self._machine.atomic(thread, STOP, lambda _: 1)
        return 0

    def _chunk(self, machine: Machine, thread: int, step: int, chunk: int, number: int) -> Turns:
        """Be a chunk of a kernel with a runtime step."""
        del machine, thread
        assert 0 <= chunk < len(self._begun[step])
        assert 0 <= number < self._members
        assert number not in self._numbers
        assert not self._begun[step][chunk]
        assert all(all(ended) for ended in self._ended[:step])
        self._begun[step][chunk] = 1
        self._numbers.add(number)
        yield
        self._ended[step][chunk] = 1
        self._numbers.remove(number)
        return 0


@pytest.fixture(scope="module")
def module() -> Iterator[ir.Module]:
    """The code, with threads that are soon tired of looking."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "SPINS", 1)
        patch.setattr(runner, "YIELDS", 1)
        yield runner.write_module()


@pytest.mark.parametrize("part", range(4))
def test_random_turns(module: ir.Module, part: int) -> None:
    for seed in range(50):
        Runs(module, 50 * part + seed).check()
