"""The Open Inference Protocol (v2): one module for each group of its calls."""

from service.routes.v2 import (
    health,
    infer_description,
    log_settings,
    metadata,
    repository,
    statistics,
    trace_setting,
)

ROUTERS = tuple(
    module.router for module in (health, statistics, metadata, repository, trace_setting, log_settings)
)
"""In the order in which paths are matched: `/v2/models/stats` comes before a model's."""

DESCRIBED = infer_description.described
"""Inference, for the API's description only."""
