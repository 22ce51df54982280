"""The list of models, as clients of the protocol see it."""

from collections.abc import Iterable

from service.repository.model_entry import IndexEntry, VersionState
from service.v2.schemas import IndexLine


def describe_index(lines: Iterable[IndexEntry], *, only_ready: bool) -> list[IndexLine]:
    """Describe the versions of the models.

    Args:
        lines: what the repository lists.
        only_ready: whether to leave out what is not served.
    """
    return [
        IndexLine(name=line.name, version=line.version or None, state=line.state.value, reason=line.reason)
        for line in lines
        if not only_ready or line.state is VersionState.READY
    ]
