"""What is answered without FastAPI: inference, health and metrics. Most processes are asked nothing else."""

from service.direct.health import show_alive, show_ready, show_v2_live, show_v2_ready
from service.direct.metrics import show_metrics
from service.http.direct_route import DirectRoute

POLLED_ROUTES = (
    DirectRoute("/livez", show_alive),
    DirectRoute("/readyz", show_ready),
    DirectRoute("/v2/health/live", show_v2_live),
    DirectRoute("/v2/health/ready", show_v2_ready),
    DirectRoute("/metrics", show_metrics),
)
"""What machines ask every few seconds."""
