from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.config.version_policy import check_policy, select_versions

VERSIONS = st.lists(st.integers(1, 99), min_size=1, unique=True).map(sorted)


@pytest.mark.parametrize(
    "value", ["none", "", 1, None, True, [], [0], [-1], [True], [1.0], ["1"], [10**18], {"1": 1}]
)
def test_anything_else_is_no_policy(value: Any) -> None:
    with pytest.raises(ValueError, match='^expected "all", "latest" or a list of version numbers from 1$'):
        check_policy(value)


@given(VERSIONS)
def test_all_and_latest(numbers: list[int]) -> None:
    versions = [str(number) for number in numbers]
    assert select_versions("all", versions) == versions
    assert select_versions("latest", versions) == versions[-1:]


@given(VERSIONS, VERSIONS)
def test_listed_versions_are_served_or_named_as_missing(numbers: list[int], listed: list[int]) -> None:
    versions = [str(number) for number in numbers]
    policy = check_policy([*listed, *listed])
    missing = [number for number in listed if number not in numbers]
    if missing:
        with pytest.raises(
            ValueError, match=rf"^there is no version {', '.join(map(str, missing))}; there are "
        ):
            select_versions(policy, versions)
    else:
        assert select_versions(policy, versions) == [str(number) for number in listed]
