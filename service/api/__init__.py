"""The endpoints: FastAPI routers, one per group, registered here.

A module has a `router`. To add an endpoint, write a module and list its router in `ROUTERS`.
"""

from fastapi import APIRouter

from service.api import (
    compare,
    console,
    docs,
    embeddings,
    explain,
    graph,
    health,
    index,
    infer,
    inspection,
    metrics,
    models,
    predict,
    quantization,
    samples,
    settings,
    stats,
    traces,
    traffic,
    v2,
)

ROUTERS: list[APIRouter] = [
    module.router
    for module in (
        *(infer, health, predict, v2, docs, console, index, embeddings),
        *(graph, inspection, compare, explain, models, traffic, samples, quantization),
        *(metrics, stats, traces, settings),
    )
]
"""In the order in which paths are matched: what runs models comes first; what is added takes no path from another."""
