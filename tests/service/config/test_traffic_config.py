"""`[traffic]`: what it may say, and that nothing else does harm."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.config.model_config import ModelConfigError, load_model_config
from service.config.traffic_config import TrafficConfig

_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30) | st.binary(max_size=9)
)
_ANY = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
_VERSIONS = st.integers(-2, 5).map(str) | st.text(max_size=4)
_TABLES = st.dictionaries(
    st.sampled_from(["weights", "sticky", "shadow"]) | st.text(max_size=9),
    _ANY | st.dictionaries(_VERSIONS, _SCALARS, max_size=4),
    max_size=4,
)


def read(folder: Path, text: str) -> TrafficConfig | None:
    (folder / "model.toml").write_text(text)
    return load_model_config(folder).traffic


def test_no_table_is_no_traffic(tmp_path: Path) -> None:
    assert read(tmp_path, "") is None


def test_every_key(tmp_path: Path) -> None:
    traffic = read(tmp_path, '[traffic]\nweights = {"2" = 90, "3" = 10.0}\nsticky = "X-User"')
    assert traffic is not None
    assert (traffic.weights, traffic.sticky) == ({"2": 90, "3": 10}, "X-User")
    assert traffic.shares(["1", "2", "3"]) == {"2": 0.9, "3": 0.1}
    assert traffic.stable(["1", "2", "3"]) == "2"


def test_the_share_of_a_version_that_is_not_served_goes_to_the_others() -> None:
    traffic = TrafficConfig(weights={"2": 60, "3": 20, "4": 20, "5": 0})
    assert traffic.shares(["2", "3", "5"]) == {"2": 0.75, "3": 0.25}
    assert traffic.shares(["5"]) == {}
    assert traffic.stable(["5"]) is None


def test_the_lower_of_equal_versions_is_stable() -> None:
    assert TrafficConfig(weights={"10": 1, "9": 1}).stable(["9", "10"]) == "9"


def test_without_weights_the_highest_version_gets_all() -> None:
    assert TrafficConfig().shares(["9", "10"]) == {"10": 1}


@pytest.mark.parametrize(
    ("table", "key", "part"),
    [
        ('weights = {"2" = -1}', "traffic.weights.2", "greater than or equal to 0"),
        ('weights = {"2" = inf}', "traffic.weights.2", "finite"),
        ('weights = {"2" = "90"}', "traffic.weights.2", "number"),
        ('weights = {"2" = 0, "3" = 0}', "traffic", "all weights are 0"),
        ('weights = {"02" = 1}', "traffic.weights", "number of a version in quotes"),
        ('weights = {"x" = 1}', "traffic.weights", "number of a version in quotes"),
        ("weights = [1]", "traffic.weights", "dictionary"),
        ('sticky = "X User"', "traffic.sticky", "name of a header"),
        ('sticky = ""', "traffic.sticky", "name of a header"),
        ("sticky = 1", "traffic.sticky", "string"),
        ("wieghts = {}", "traffic.wieghts", "known keys: weights, sticky"),
    ],
)
def test_faults_are_named(tmp_path: Path, table: str, key: str, part: str) -> None:
    with pytest.raises(ModelConfigError) as caught:
        read(tmp_path, f"[traffic]\n{table}")
    assert caught.value.key is not None
    assert caught.value.key.startswith(key)
    assert part in str(caught.value)


@given(_TABLES)
def test_whatever_a_table_says_it_is_refused_or_shares_add_up(table: dict[str, object]) -> None:
    try:
        traffic = TrafficConfig.model_validate(table)
    except ValidationError:
        return
    shares = traffic.shares(["1", "2", "3"])
    assert not shares or sum(shares.values()) == pytest.approx(1)
    assert all(share > 0 for share in shares.values())
    assert traffic.stable(["1", "2", "3"]) in (*shares, None)
