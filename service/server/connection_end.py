"""The end of connections once the server leaves, so that clients connect to other servers."""

from collections.abc import Callable


class ConnectionEnd:
    """Makes the next response of each new connection its last, once all connections are to end.

    Used on the event loop only.
    """

    def __init__(self) -> None:
        self._is_over = False

    def begin(self, end: Callable[[], None]) -> None:
        """Take note of a new connection.

        Args:
            end: makes its next response the last; called at once if all connections are to end.
        """
        if self._is_over:
            end()

    def end_all(self) -> None:
        """End each connection that begins from now on after one response."""
        self._is_over = True
