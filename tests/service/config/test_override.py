import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config.override import ConfigOverride, parse_load_parameters
from service.errors import ServiceError
from tests.cases import check_each

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
KNOWN = st.sampled_from(
    ["name", "max_batch_size", "dynamic_batching", "version_policy", "latest", "specific", "versions"]
)


def parse(config: Any) -> ConfigOverride:
    override = parse_load_parameters("m", {"config": json.dumps(config)})
    assert override is not None
    return override


def refused(parameters: dict[str, Any]) -> str:
    with pytest.raises(ServiceError) as caught:
        parse_load_parameters("m", parameters)
    assert (caught.value.status, caught.value.code) == (422, "invalid_config")
    return caught.value.message


def test_no_configuration_overrides_nothing() -> None:
    assert parse_load_parameters("m", {}) is None
    assert parse({}) == ConfigOverride()


def test_keys_that_there_are_here_are_taken() -> None:
    config = {
        "name": "m",
        "max_batch_size": 8,
        "dynamic_batching": {"preferred_batch_size": [4, 8], "max_queue_delay_microseconds": 100},
        "version_policy": {"specific": {"versions": [1, 3]}},
    }
    override = parse(config)
    assert override.max_batch_size == 8
    assert override.dynamic_batching.preferred_batch_size == [4, 8]
    assert override.dynamic_batching.max_queue_delay_microseconds == 100
    assert override.versions == (1, 3)


def test_64_bit_numbers_may_be_text() -> None:
    config = {
        "dynamic_batching": {"max_queue_delay_microseconds": "100"},
        "version_policy": {"specific": {"versions": ["2"]}},
    }
    override = parse(config)
    assert override.dynamic_batching.max_queue_delay_microseconds == 100
    assert override.versions == (2,)


@pytest.mark.parametrize(
    ("policy", "versions"),
    [({"all": {}}, "all"), ({"latest": {}}, "latest"), ({"latest": {"num_versions": 1}}, "latest")],
)
def test_version_policies(policy: dict[str, Any], versions: str) -> None:
    assert parse({"version_policy": policy}).versions == versions


def test_null_keeps_what_model_toml_says() -> None:
    override = parse({"max_batch_size": None, "version_policy": None})
    assert (override.max_batch_size, override.versions) == (None, None)


def test_anything_else_is_refused_by_name() -> None:
    cases: list[tuple[Any, str]] = [
        ([], "config: is []; expected an object"),
        (
            {"backend": "x", "platform": "y"},
            "config: 'backend', 'platform' cannot be set when a model is loaded",
        ),
        ({"parameters": {}}, "'parameters' cannot be set"),
        ({"name": "n"}, "name: is 'n'; expected 'm'"),
        ({"max_batch_size": -1}, "max_batch_size: is -1; expected a whole number from 0 to 4096"),
        ({"max_batch_size": True}, "max_batch_size: is True"),
        ({"max_batch_size": 1.5}, "max_batch_size: is 1.5"),
        ({"dynamic_batching": {"priority_levels": 2}}, "dynamic_batching: 'priority_levels' cannot be set"),
        ({"dynamic_batching": {"preferred_batch_size": 4}}, "preferred_batch_size: is 4; expected a list"),
        ({"dynamic_batching": {"preferred_batch_size": [0]}}, "preferred_batch_size: is 0"),
        ({"dynamic_batching": {"max_queue_delay_microseconds": "x"}}, "microseconds: is 'x'"),
        ({"version_policy": {}}, "version_policy: names 0 policies; expected one of all, latest, specific"),
        ({"version_policy": {"all": {}, "latest": {}}}, "version_policy: names 2 policies"),
        ({"version_policy": {"all": None}}, "version_policy.all: is None; expected an object"),
        ({"version_policy": {"all": None, "latest": {}}}, "version_policy.all: is None; expected an object"),
        ({"version_policy": {"all": {"x": 1}}}, "version_policy.all: 'x' cannot be set"),
        ({"version_policy": {"latest": {"num_versions": 2}}}, "latest.num_versions: is 2; expected 1"),
        (
            {"version_policy": {"specific": {"versions": []}}},
            "specific.versions: is []; expected version numbers",
        ),
        ({"version_policy": {"specific": {}}}, "specific.versions: is None"),
        ({"version_policy": {"specific": {"versions": "all"}}}, "specific.versions: is 'all'"),
        ({"version_policy": {"specific": {"versions": [True]}}}, "specific.versions: is [True]"),
        ({"dynamic_batching": None}, "dynamic_batching: is None; expected an object with the known keys"),
        ({"name": None}, "name: is None; expected 'm'"),
        ({"max_batch_size": "{expected}"}, "max_batch_size: is '{expected}'; expected a whole number"),
    ]

    def check(case: tuple[Any, str]) -> None:
        config, text = case
        assert text in refused({"config": json.dumps(config)})

    check_each(cases, check)


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({"file:1/model.bin": "AAAA"}, "file:1/model.bin: files cannot come with a request"),
        ({"other": 1}, "other: is unknown; expected config"),
        ({"config": {}}, "config: is {}; expected a JSON object, as text"),
        ({"config": "{"}, "config: is no JSON: "),
        ({"config": "[" * 100_000}, "config: is no JSON: "),
        ({"config": '{"max_batch_size": ' + "9" * 5000 + "}"}, "config: is no JSON: "),
    ],
)
def test_parameters_that_are_no_configuration_are_refused(parameters: dict[str, Any], reported: str) -> None:
    assert reported in refused(parameters)


@given(
    st.dictionaries(KNOWN | st.text(max_size=5), JSON | st.dictionaries(KNOWN, JSON, max_size=2), max_size=3)
)
def test_any_json_is_taken_or_refused(config: dict[str, Any]) -> None:
    with suppress(ServiceError):
        assert isinstance(parse(config), ConfigOverride)
