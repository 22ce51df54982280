"""When a call reached each stage."""

from dataclasses import dataclass


@dataclass(slots=True)
class Timestamps:
    """When a call reached each stage, in nanoseconds of `time.perf_counter_ns`; 0 for a stage that it never reached.

    Attributes:
        received: its body was complete.
        queued: it was put in the queue.
        decode_start: a worker took it.
        decode_end: its inputs were decoded.
        forward_start: its run began. Between `decode_end` and this it waited for its batch.
        forward_end: its run was over.
        encode_end: its answer was encoded.
    """

    received: int = 0
    queued: int = 0
    decode_start: int = 0
    decode_end: int = 0
    forward_start: int = 0
    forward_end: int = 0
    encode_end: int = 0

    @property
    def queue_ns(self) -> int:
        """Nanoseconds that it waited, for a worker and for its batch together; 0 until it runs."""
        if not self.forward_start:
            return 0
        return self.decode_start - self.queued + self.forward_start - self.decode_end
