"""The endpoints: a module for each group of them, registered here.

A module has a `router`. To add an endpoint, write a module and list its router in `ROUTERS`.
"""

from fastapi import APIRouter

from service.routes import (
    compare,
    console,
    docs,
    embeddings,
    graph,
    health,
    index,
    infer_description,
    inspection,
    metrics,
    models,
    predict_description,
    quantization,
    samples,
    settings,
    stats,
    traces,
    traffic,
    v2,
)

ROUTERS: list[APIRouter] = [
    *v2.ROUTERS,
    *(
        module.router
        for module in (
            *(
                docs,
                console,
                index,
                embeddings,
                graph,
                inspection,
                compare,
                models,
                traffic,
                samples,
                quantization,
            ),
            *(health, metrics, stats, traces, settings),
        )
    ),
]
"""In the order in which paths are matched: what is added at the end takes no path away from another."""

DESCRIBED = (infer_description.described, predict_description.described, v2.DESCRIBED)
"""Routers of what `direct.inference` answers, for the API's description only."""
