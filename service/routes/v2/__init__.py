"""The Open Inference Protocol (v2): one module for each group of its calls."""

from service.routes.v2 import health, infer, log_settings, metadata, repository, statistics, trace_setting

ROUTERS = tuple(
    module.router for module in (infer, health, statistics, metadata, repository, trace_setting, log_settings)
)
"""In the order in which paths are looked for: what is asked most first, `/v2/models/stats` before a model's."""
