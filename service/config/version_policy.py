"""Which of a model's versions are served."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import PlainValidator

MAX_VERSION = 10**18 - 1
"""The largest version number; it fits the integers of any client."""

EXPECTED = 'expected "all", "latest" or a list of version numbers from 1'


def check_policy(value: Any) -> Any:
    """Validate a version policy; a list becomes a tuple without duplicates.

    Raises:
        ValueError: the value is no version policy.
    """
    if value in ("all", "latest"):
        return value
    if not isinstance(value, list | tuple) or not value or not all(map(_is_version, value)):
        raise ValueError(EXPECTED)
    return tuple(dict.fromkeys(value))


VersionPolicy: TypeAlias = Annotated[Literal["all", "latest"] | tuple[int, ...], PlainValidator(check_policy)]
"""Which versions are served: all of them, the highest one, or those listed."""


def select_versions(policy: VersionPolicy, available: Sequence[str]) -> list[str]:
    """Return the versions to serve.

    Args:
        policy: which versions to serve.
        available: the versions of the model, lowest first; at least one.

    Raises:
        ValueError: the policy lists a version that the model does not have.
    """
    if policy == "all":
        return list(available)
    if policy == "latest":
        return [available[-1]]
    wanted = {str(number) for number in policy}
    missing = sorted(wanted - set(available), key=int)
    if missing:
        raise ValueError(f"there is no version {', '.join(missing)}; there are {', '.join(available)}")
    return [version for version in available if version in wanted]


def _is_version(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_VERSION
