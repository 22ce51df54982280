"""What all tests share, and which of them `make test` leaves to `make test-all`."""

import gc
import hashlib
import logging
import os
import resource
from collections.abc import Generator, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, settings

from engine.compiler.emit import object_file
from engine.compiler.emit.code_store import CodeStore
from engine.compiler.emit.target import Target, llvm_versions
from engine.compiler.program import programs
from service.config.machine import this_machine
from tests.engine.compiler.emulation import WIDTHS, emulating, is_emulated

SLOW = {
    "tests/attack": "attacks last seconds, and most need a server of their own",
    "tests/bench": "tests of the benchmarks, which no product code depends on",
    "tests/console": "opens pages in a browser",
    "tests/deploy/test_balancer.py": "starts HAProxy and several servers",
    "tests/differential": "compares random graphs at every vector width, on paths that other tests take",
    "tests/docs/test_examples.py": "runs every example of README and docs, most on servers of their own",
    "tests/docs/test_notebook.py": "runs a notebook",
    "tests/engine/compiler/emit/test_code_store.py::test_eight_processes_at_once_fill_an_empty_folder": "8 processes",
    "tests/engine/compiler/emit/test_code_store.py::test_processes_with_and_without_kept_code": "4 processes",
    "tests/engine/compiler/program/test_image_operators.py::test_numpy_does_none_of_it": "compiles 117 graphs again",
    "tests/engine/compiler/program/test_observation.py::test_every_operand_of_a_network": "captures all of 14 networks",
    "tests/engine/compiler/program/test_dynamic_int8.py::test_every_length_in_any_order": "compiles for each length",
    "tests/engine/compiler/program/test_precision.py::test_networks_are_near_pytorch": "compiles 13 networks twice",
    "tests/engine/compiler/program/test_random_integers.py": "runs random graphs",
    "tests/engine/compiler/selection/test_parts.py": "compiles kernels of up to 1024 channels",
    "tests/engine/compiler/selection/test_random_parts.py": "compiles random layers for many numbers of threads",
    "tests/fuzz/test_corpus.py::test_changed_models_raise_no_foreign_errors": "compiles hundreds of changed models",
    "tests/golden/test_networks.py::test_network_matches_pytorch[yolov5_raw": "has the layers of yolov5",
    "tests/golden/test_rounded_networks.py::test_errors_are_those_of_rounding[yolov5_raw": "compiles 60 convolutions",
    "tests/golden/test_rounded_networks.py::test_results_are_finite": "runs every network on extreme inputs",
    "tests/golden/test_yolov5s.py": "compiles a network of full size",
    "tests/models/test_digits.py::test_a_row_has_the_same_bits": "compiles a program for each batch size",
    "tests/models/test_digits.py::test_int8_finds": "quantizes the model in three ways",
    "tests/packaging/test_healthcheck.py": "starts a server for each case",
    "tests/sanitizer": "interprets every access to memory of compiled programs",
    "tests/service/description/test_refusals.py": "sends twelve requests to each operation, with four settings",
    "tests/service/grpc/test_hostile.py::test_no_more_is_unpacked": "unpacks large compressed messages",
    "tests/service/grpc/test_shutdown.py": "starts a server for each case",
    "tests/service/images/test_image_file.py::test_one_large_picture_is_in_memory_once": "decodes 50-megapixel images",
    "tests/service/processes": "starts several processes",
    "tests/service/repository/test_reload.py::test_reloads_leave_no_memory": "reloads a model 200 times",
    "tests/service/repository/test_rounded_row_runs.py": "compiles networks in bf16 and int8 for many batch sizes",
    "tests/service/server/test_batching.py": "compares several servers",
    "tests/service/server/test_load.py": "starts a server for each case, and sends hundreds of requests",
    "tests/service/server/test_overload.py": "sends thousands of requests",
    "tests/service/server/test_shutdown.py": "starts a server for each case",
    "tests/service/server/test_soak.py": "seconds of mixed load on several servers",
    "tests/service/server/test_spans.py": "starts a server for each case",
    "tests/service/server/test_startup.py": "starts a server for each case",
    "tests/service/server/wire/test_fair_shares.py": "starts a server for each case",
    "tests/service/server/wire/test_load.py": "starts a server for each case, and sends hundreds of requests",
    "tests/service/test_schemathesis.py": "sends thousands of requests",
    "tests/service/test_pictures.py": "quantizes and compiles the digits model",
    "tests/service/traffic/test_real_server.py": "sends thousands of requests",
    "tests/test_processors.py": "runs networks in a process for each processor",
}
"""How the names of the tests begin that `make test` leaves out -> the reason."""
SLOW_WIDTHS = "the same Python writes the kernels of every vector width; `make test` runs the widest"
FAST_EMULATION = "contraction/test_bf16_"
SLOW_EMULATION = (
    "of emulated processors `make test` runs tiles of bfloat16, and of integers where there is but one target"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--limit",
        type=float,
        help="processor time in seconds above which a test that is not marked slow fails",
    )


# A slow machine is no failure; and what a run in CI finds must be found again by the next.
settings.register_profile(
    "kuiper",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("quick", settings.get_profile("kuiper"), max_examples=10)
settings.load_profile("kuiper")

os.environ["KUIPER_CACHE"] = ""  # what is tested is what the compiler makes now


def slow_reason(item: pytest.Item) -> str | None:
    """Return why `make test` leaves a test out, or None."""
    parameters = (
        item.callspec.params.values()
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else ()
    )
    targets = [value for value in parameters if isinstance(value, Target)]
    if any(target in WIDTHS[1:] for target in targets):
        return SLOW_WIDTHS
    if any(map(is_emulated, targets)) and not (targets[0].has_tiles and FAST_EMULATION in item.nodeid):
        return SLOW_EMULATION
    return next((reason for place, reason in SLOW.items() if item.nodeid.startswith(place)), None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = slow_reason(item)
        if reason is not None:
            item.add_marker(pytest.mark.slow(reason=reason))


@pytest.hookimpl(optionalhook=True)  # the checks of clusters run without pytest-xdist
def pytest_xdist_auto_num_workers() -> int:
    """Run one worker more than there are CPUs: some tests wait for timeouts of servers."""
    return this_machine().cpus + 1


def pytest_collection_finish() -> None:
    """Spare the garbage collector the tests themselves, which stay until the end."""
    gc.freeze()


def _processor_time() -> float:
    """Return the processor time of this process and of its children that have ended, in seconds."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that takes more than `--limit` and is not marked slow."""
    limit, start = item.config.getoption("limit"), _processor_time()
    result = yield
    taken = _processor_time() - start
    if limit is not None and taken > limit and item.get_closest_marker("slow") is None:
        pytest.fail(
            f"takes {taken:.1f} s of processor time; the limit is {limit:g} s: make it cheaper, or list it in SLOW"
        )
    return result


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the whole run compiles once; servers that tests start have their caches in it."""
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    os.environ["XDG_CACHE_HOME"] = str(folder / "caches")
    return folder


@pytest.fixture(scope="session", autouse=True)
def no_text_is_compiled_twice(pytestconfig: pytest.Config) -> Iterator[None]:
    """Let LLVM compile each text once, in whichever process and run of tests: nothing else decides what it makes.

    Kernels are written again wherever a test needs them; code is reused where they come out the same to the letter.
    Those for processors that this machine is not are emulated.
    """
    kept = getattr(pytestconfig, "cache", None)  # None with -p no:cacheprovider
    store = CodeStore(None if kept is None else kept.mkdir("machine-code"))
    compile_text = object_file.compile_text

    def look_up_or_compile(text: str, target: Target, effort: int = 2) -> bytes:
        key = hashlib.sha256(f"{llvm_versions()} {effort} {target}\0{text}".encode()).hexdigest()
        known = store.load(key)
        if known is None:
            known = compile_text(text, target, effort)
            store.save(key, known)
        return known

    with patch.object(object_file, "compile_text", look_up_or_compile), emulating():
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
