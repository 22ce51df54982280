"""How far a graph has come."""

from enum import Enum


class GraphState(Enum):
    """How far a graph has come."""

    NEED_INIT = "NeedInit"
    NEED_BUILD = "NeedBuild"
    COMPLETE = "Complete"

    def has_reached(self, state: "GraphState") -> bool:
        """Tell whether a graph in this state has come as far as another one."""
        return _ORDER.index(self) >= _ORDER.index(state)


_ORDER = tuple(GraphState)
"""Made once: it is asked for several times in each run."""
