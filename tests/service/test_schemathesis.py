"""Requests made from the API's description: no response is a fault of the server, none is undocumented.

`TEST_SCHEMATHESIS_EXAMPLES=300 python -m pytest tests/service/test_schemathesis.py` takes some minutes.
"""

import os
from collections.abc import Iterator
from contextlib import nullcontext, suppress

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.service.models import add_models
from tests.service.server.process import SOON, ServerProcess

EXAMPLES = int(os.environ.get("TEST_SCHEMATHESIS_EXAMPLES", "6"))
"""Requests of each kind for each operation."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
_QUIET = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
EXAMPLE = "digit"
"""The model that the description names as an example."""
SOUND = [{"name": "0", "shape": [1, 3], "datatype": "FP32", "data": [1, -2, 3]}]
"""What chance does not find: the inputs of the protocol's tensors that the model takes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    models = add_models(tmp_path_factory.mktemp("models"))
    with ServerProcess("--models", str(models), "--model-control", "explicit") as started:
        yield started


def test_responses_are_as_described(server: ServerProcess) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    operations = [result.ok() for result in schema.get_all_operations()]
    paths = {operation.path for operation in operations}
    assert {"/infer", "/metrics", "/traces", "/v2/models/{name}/infer"} <= paths
    for operation in operations:
        for mode in GenerationMode:
            for known in (False, True):
                # an operation that takes nothing takes nothing that does not fit
                hopeless = suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext()
                with hopeless:
                    _send(operation, mode, known)


def test_sound_inputs_are_run_whatever_stands_beside_them(server: ServerProcess) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    seen: set[int] = set()

    @settings(_QUIET, max_examples=4 * EXAMPLES)
    @given(schema["/v2/models/{name}/infer"]["POST"].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def send(case: schemathesis.Case) -> None:
        _name_model(case)
        case.headers = {"Content-Type": "application/json"}
        case.media_type = "application/json"
        beside = case.body if isinstance(case.body, dict) else {}
        case.body = {**beside, "inputs": SOUND, "outputs": [{"name": "1"}]}
        seen.add(case.call_and_validate(checks=CHECKS, timeout=SOON).status_code)

    send()
    assert 200 in seen


def _send(operation: schemathesis.APIOperation, mode: GenerationMode, known: bool) -> None:
    """Send requests that fit an operation's description or do not, to any model or to one that is served."""

    @settings(_QUIET, max_examples=EXAMPLES)
    @given(operation.as_strategy(generation_mode=mode))
    def send(case: schemathesis.Case) -> None:
        if known or case.path_parameters.get("name") == EXAMPLE:
            _name_model(case)
        case.call_and_validate(checks=CHECKS, timeout=SOON)

    send()


def _name_model(case: schemathesis.Case) -> None:
    # the one that is loaded and unloaded is not the one that is run
    name = "pair" if "/repository/" in case.path else "vector"
    if "name" in case.path_parameters:
        case.path_parameters["name"] = name
        if "version" in case.path_parameters:
            case.path_parameters["version"] = "1"
    elif case.path in ("/infer", "/graph"):
        case.query = {**case.query, "model": name}
