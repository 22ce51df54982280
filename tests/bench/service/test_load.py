"""The load that wrk makes: its arguments, and what is read from its output."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest

from tests.bench.service.load import LoadError, Timings, drain, measure, read_summary

SUMMARY = '{"requests": %d, "seconds": 2.0, "p50_ms": 0.5, "p99_ms": 2.5, "errors": %d, "failures": %d}'


@pytest.fixture
def wrk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a wrk in the path that notes its arguments and what it was to send; returns the file of its notes."""
    notes, program = tmp_path / "notes", tmp_path / "wrk"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {notes}\nfor last; do :; done\ncat "$last" >> {notes}\n'
        f"echo Running\necho '{SUMMARY % (8, 0, 0)}'\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return notes


def test_summary_gives_the_timings() -> None:
    assert read_summary(f"Running\n\n{SUMMARY % (300, 0, 0)}\n") == Timings(150.0, 0.5, 2.5)


@pytest.mark.parametrize(("errors", "failures"), [(1, 0), (0, 1)])
def test_response_that_is_an_error_or_missing_makes_the_measurement_fail(errors: int, failures: int) -> None:
    with pytest.raises(LoadError, match=f"^{errors} requests were answered by an error, {failures} were not"):
        read_summary(SUMMARY % (300, errors, failures))


@pytest.fixture
def server() -> Iterator[tuple[str, Queue[bytes]]]:
    """Answer one connection with what is put into the queue, once a request came; the request is put there then."""
    responses: Queue[bytes] = Queue()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(5)

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                request = connection.recv(1024)
                connection.sendall(responses.get())
                responses.put(request)

        thread = Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", responses
        thread.join()


def test_request_is_sent_to_warm_up_and_then_measured(wrk: Path, server: tuple[str, Queue[bytes]]) -> None:
    url, responses = server
    responses.put(b"HTTP/1.1 200 OK\r\n\r\n")
    assert measure(url, b"POST / HTTP/1.1\r\n\r\n", 4, 3) == Timings(4.0, 0.5, 2.5)
    assert responses.get() == b"POST / HTTP/1.1\r\n\r\n"  # what the warm-up left is waited for
    warm_up, measured = wrk.read_bytes().decode().split("\r\n\r\n")[:2]
    assert "--connections=4 --duration=1s" in warm_up
    assert "--connections=4 --duration=3s" in measured
    assert measured.endswith("POST / HTTP/1.1")


def test_server_that_closes_without_a_response_is_reported(server: tuple[str, Queue[bytes]]) -> None:
    url, responses = server
    responses.put(b"")
    with pytest.raises(LoadError, match=r"does not answer: it closed the connection$"):
        drain(url, b"POST / HTTP/1.1\r\n\r\n")


def test_server_that_is_not_there_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(LoadError, match=f"127.0.0.1:{port} does not answer: "):
        drain(f"http://127.0.0.1:{port}", b"")


def test_wrk_that_is_missing_is_reported_with_its_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadError, match="apt install wrk"):
        measure("http://127.0.0.1:9/", b"", 1, 1)
