"""When a connection reads: not while it holds bytes of requests that are sent ahead of the responses."""

from uvicorn.protocols.http.flow_control import FlowControl


class ReadFlow(FlowControl):
    """uvicorn's flow control, which does not go on reading while bytes are held.

    Attributes:
        held: bytes that were received and are not parsed yet.
    """

    held = b""

    def hold(self, data: bytes) -> None:
        """Hold bytes, after those that are held already, and stop reading."""
        self.held += data
        self.pause_reading()

    def release(self) -> bytes:
        """Return the bytes that were held; none are any more."""
        held, self.held = self.held, b""
        return held

    def resume_reading(self) -> None:
        """Go on reading, unless bytes are held."""
        if not self.held:
            super().resume_reading()
