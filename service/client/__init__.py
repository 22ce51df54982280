"""A client of the server: numpy arrays and pictures in, numpy arrays and predictions out.

    Client, AsyncClient             calls: infer, predict, detect, explain, trace, graph, models, model
    Retries                         how often and how long a call is tried again
    ClientError                     every error of a client
    ├── ConnectionFailedError       no server answers at the address
    ├── DeadlineError               the deadline of a call has passed, here or at the server
    ├── ResponseError                 the response is not what the server's API describes
    └── RefusedError                the server has answered with an error, whose code and details it holds
        ├── AccessError             401, 403
        ├── NotFoundError           404
        ├── TooLargeError           413
        ├── InvalidInputError       other 4xx
        ├── BusyError               429, 503: it was tried again for as long as `Retries` allow
        └── ServerError             other 5xx

It imports neither the engine nor the server.
"""

from service.client.asynchronous import AsyncClient
from service.client.blocking import Client
from service.client.errors import (
    AccessError,
    BusyError,
    ClientError,
    ConnectionFailedError,
    DeadlineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    ResponseError,
    ServerError,
    TooLargeError,
)
from service.client.responses import Box, Detection, Explanation, InferResponse, Layer, Operand, Result, Trace
from service.client.retries import Retries

__all__ = [
    "AccessError",
    "AsyncClient",
    "Box",
    "BusyError",
    "Client",
    "ClientError",
    "ConnectionFailedError",
    "DeadlineError",
    "Detection",
    "Explanation",
    "InferResponse",
    "InvalidInputError",
    "Layer",
    "NotFoundError",
    "Operand",
    "RefusedError",
    "ResponseError",
    "Result",
    "Retries",
    "ServerError",
    "TooLargeError",
    "Trace",
]
