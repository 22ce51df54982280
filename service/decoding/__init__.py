"""Decodes large bodies in processes of their own, which the server can kill.

A body that is large holds the GIL for long while it is parsed, takes many times its own memory, and may exploit its
parser. A decoder process has lower priority, bounded memory and no secrets, and is killed when it takes too long or
when the client leaves. Its results are arrays in shared memory, which are copied and validated.

    large_body_decoder()     the decoder of this thread; None: decode here
    leave_large()            leaves other work that takes a worker long to the same threads
    NeedsDecoderError        raised by both in workers, which leave such requests to the threads that have a decoder
    DECODERS                 all decoders of the server
"""

from service.decoding.decoder import (
    DECODERS,
    Decoder,
    DecodingStoppedError,
    NeedsDecoderError,
    Task,
    large_body_decoder,
    leave_large,
    leaves_large_bodies,
    leaving_large_bodies,
)

__all__ = [
    "DECODERS",
    "Decoder",
    "DecodingStoppedError",
    "NeedsDecoderError",
    "Task",
    "large_body_decoder",
    "leave_large",
    "leaves_large_bodies",
    "leaving_large_bodies",
]
