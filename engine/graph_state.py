"""Lifecycle states of a graph."""

from enum import Enum


class GraphState(Enum):
    """Lifecycle states of a graph."""

    NEED_INIT = "NeedInit"
    NEED_BUILD = "NeedBuild"
    COMPLETE = "Complete"

    def has_reached(self, state: "GraphState") -> bool:
        """Return whether a graph in this state has come as far as another one."""
        return _ORDER.index(self) >= _ORDER.index(state)


_ORDER = tuple(GraphState)
"""A constant, as it is read several times in each run."""
