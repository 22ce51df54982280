"""A process that holds one thing and works with it when asked, so that runtimes do not share threads or memory."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

SECONDS = 300
"""How long a response may take."""


class WorkerError(Exception):
    """The process failed, ended, or did not answer."""


class Worker:
    """A process of its own, started again rather than forked.

    Args:
        make: called there; what it returns is what the process holds. A function of a module.
        arguments: of `make`.
    """

    def __init__(self, make: Callable[..., object], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, make, arguments), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return what `function` of a module gives for what the process holds and these arguments.

        Raises:
            WorkerError: the process could not make what it holds, the function raised, or the process ended.
        """
        try:
            self._connection.send((function, arguments))
            if not self._connection.poll(SECONDS):
                raise WorkerError(f"no response within {SECONDS} s")
            is_response, response = self._connection.recv()
        except (EOFError, ConnectionError) as error:
            self._process.join(1)
            raise WorkerError(f"its process ended with exit code {self._process.exitcode}") from error
        if not is_response:
            raise WorkerError(response)
        return response

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def in_own_process(function: Callable[..., Any], *arguments: object) -> Any:
    """Return what a function of a module gives in a process of its own.

    Raises:
        WorkerError: it raised, or its process ended.
    """
    with Worker(function, *arguments) as worker:
        return worker.ask(_held)


def _held(thing: object) -> object:
    return thing


def _serve(connection: Connection, make: Callable[..., object], arguments: tuple[object, ...]) -> None:
    failure, thing = None, None
    try:
        thing = make(*arguments)
    except Exception as error:  # whatever another runtime raises is reported to the caller
        failure = describe(error)
    while True:
        try:
            function, parameters = connection.recv()
        except EOFError:
            return
        if failure is None:
            try:
                connection.send((True, function(thing, *parameters)))
            except Exception as error:
                connection.send((False, describe(error)))
        else:
            connection.send((False, failure))


def describe(error: Exception) -> str:
    """Return an error as one short line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200] if lines else ''}"
