"""FastAPI's application: all endpoints that are not answered directly, and the API's description."""

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.routing import BaseRoute

from service.description.openapi import DESCRIPTION, install_openapi
from service.http.access import Access
from service.http.origins import OriginPolicy
from service.http.parameter_errors import install_error_handlers
from service.http.rate_limit import TokenBuckets
from service.routes import DESCRIBED, ROUTERS
from service.services import Services
from service.version import kuiper_version


def make_api(
    services: Services,
    routes: Sequence[BaseRoute],
    access: Access,
    origins: OriginPolicy,
    buckets: TokenBuckets | None,
) -> FastAPI:
    """Return FastAPI's application.

    Args:
        services: the parts of the server.
        routes: those that run models; they come here with other methods than theirs.
        access: which operations need keys.
        origins: refuses requests for other hosts and of other origins.
        buckets: refuse clients that send too many requests; None where they may.
    """
    api = FastAPI(
        title="Kuiper Serve",
        description=DESCRIPTION,
        version=kuiper_version(),
        routes=list(routes),
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
    )
    api.state.services = services
    install_error_handlers(api)
    for router in ROUTERS:
        api.include_router(router)
    install_openapi(api, access, origins, [] if buckets is None else [buckets], DESCRIBED)
    return api
