"""What all tests share."""

import hashlib
import logging
import os
import sys
from collections.abc import Generator, Iterator
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings
from llvmlite import ir

from engine.compiler.emit import object_file
from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.target import Target, supported_targets
from engine.compiler.program import programs
from service.collection import without_collection

# A slow machine is no failure; and what a run in CI finds must be found again by the next.
settings.register_profile(
    "kuiper",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("kuiper")

os.environ["KUIPER_CACHE"] = ""  # what is tested is what the compiler makes now

_AGAIN = frozenset({"bench", "differential", "property", "sanitizer"})
"""Folders of tests that run at random, or once more, what others run case by case, or code of their own."""
_MEASURE_PROCESSES = "COVERAGE_PROCESS_CONFIG"
"""Variable by which coverage has the processes that tests start measured."""


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, which looks through the tests in no later collection either.

    All of them stay until the end: looking at them again and again would take a sixth of the time.
    """
    with without_collection():
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure no coverage of tests that take the paths of others again, which would cost half as much as the tests.

    These are tests by chance, of benchmarks, and of kernels at other widths than the widest, which the same Python
    writes.
    """
    narrower = supported_targets()[1:]
    for item in items:
        call = getattr(item, "callspec", None)  # a test without parameters has none
        values = call.params.values() if call is not None else ()
        is_narrower = any(isinstance(value, Target) and value in narrower for value in values)
        if is_narrower or item.nodeid.split("/")[1] in _AGAIN:
            item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure no coverage in processes that such tests start, or that are marked as usual ones.

    It takes two fifths of the start of a server.
    """
    is_known = any(map(item.get_closest_marker, ("no_cover", "usual_processes")))
    measured = os.environ.pop(_MEASURE_PROCESSES, None) if is_known else None
    try:
        return (yield)
    finally:
        if measured is not None:
            os.environ[_MEASURE_PROCESSES] = measured


@pytest.fixture(scope="session", autouse=True)
def no_text_is_compiled_twice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let LLVM compile each text once in a run of tests, in whichever process: nothing else decides what it makes.

    Kernels are written anew wherever a test needs them; code is reused where they come out the same to the letter.
    """
    folder = tmp_path_factory.getbasetemp()
    store = CodeStore((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "machine-code")
    compile_text = object_file.compile_text

    def look_up_or_compile(text: str, target: Target, effort: int = 2) -> bytes:
        key = hashlib.sha256(f"{effort} {target}\0{text}".encode()).hexdigest()
        known = store.load(key)
        if known is None:
            known = compile_text(text, target, effort)
            store.save(key, known)
        return known

    with patch.object(object_file, "compile_text", look_up_or_compile):
        yield


@pytest.fixture(scope="session", autouse=True)
def llvmlite_is_not_traced() -> Iterator[None]:
    """Measure no coverage while llvmlite writes a module as text: it calls nothing of ours, and takes twice as long."""
    write = ir.Module.__repr__

    def write_untraced(module: ir.Module) -> str:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return str(write(module))
        finally:
            sys.settrace(tracer)

    with patch.object(ir.Module, "__repr__", write_untraced):
        yield


class _Refusals(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def no_program_is_refused(request: pytest.FixtureRequest) -> Iterator[None]:
    """A program that verification refuses is a mistake in the compiler, whatever else a test looks at."""
    logger, handler = logging.getLogger(programs.__name__), _Refusals()
    logger.addHandler(handler)
    yield
    logger.removeHandler(handler)
    if "plants_a_mistake" not in request.keywords:
        assert not handler.messages
