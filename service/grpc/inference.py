"""`ModelInfer` and `ModelStreamInfer`: calls that run a model."""

from functools import partial
from time import perf_counter_ns

from service.errors import ServiceError
from service.fairness import FairExecutor
from service.grpc.exchange import GrpcExchange
from service.grpc.front import Incoming
from service.grpc.infer_message import InferMessage, split
from service.repository.loaded_model import LoadedModel
from service.scheduling.job import Job, ProtocolName
from service.services import Services

_SMALL_BYTES = 1 << 16
"""Maximum bytes of a request besides its tensors that are parsed on the event loop."""
_LEAST_SECONDS = 1e-3
"""Time of a request whose deadline has passed already: it ends as others do whose time is up."""


class Inference:
    """Runs models for requests that come by gRPC.

    Args:
        services: the parts of the server.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._limits = services.settings.limits
        self._parser = FairExecutor("grpc-messages")

    async def respond(self, incoming: Incoming) -> bytes:
        """Return a `ModelInferResponse`.

        Raises:
            ServiceError: why there is none.
            CancelledError: the client has left; its request is dropped.
        """
        received = perf_counter_ns()
        message = split(incoming.data)
        headers = incoming.context.headers
        model = self._services.choose_model(message.model or None, message.version or None, headers)
        incoming.context.model = model.name
        call = await self._receive(model, message, incoming, received)
        del message  # the exchange drops it once it is decoded
        return await self._services.scheduler.run(call)

    async def _receive(
        self, model: LoadedModel, message: InferMessage, incoming: Incoming, received: int
    ) -> Job[bytes]:
        context, scheduler = incoming.context, self._services.scheduler
        try:
            scheduler.check_room(model, context.client)
            exchange = await self._open(model, message, incoming)
        except ServiceError as error:
            scheduler.record_refusal(model, ProtocolName.GRPC, context.request_id, received, error)
            raise
        incoming.data = b""
        return Job(
            model=model,
            protocol=ProtocolName.GRPC,
            request_id=context.request_id,
            decode=exchange.decode,
            encode=exchange.encode,
            received_ns=received,
            timeout=_timeout(exchange.parameters.timeout, incoming.rpc.time_remaining()),
            priority=exchange.parameters.priority,
            client=context.client,
        )

    async def _open(self, model: LoadedModel, message: InferMessage, incoming: Incoming) -> GrpcExchange:
        if len(message.head) <= _SMALL_BYTES:
            return GrpcExchange(model, message, self._limits)
        make = partial(GrpcExchange, model, message, self._limits)
        return await self._parser.run(incoming.context.client, make, self._services.settings.timeout)


def _timeout(asked: float | None, remaining: float | None) -> float | None:
    """Return the seconds that a request has: what it says, or what is left until its client's deadline."""
    if remaining is None:
        return asked
    remaining = max(remaining, _LEAST_SECONDS)
    return remaining if asked is None else min(asked, remaining)
