"""Ray Serve: each replica of a deployment is the whole server, behind the HAProxy that Ray runs.

`build` is what `serve.run` and the `import_path` of a YAML file take; `environment` returns the variables that Ray's
own processes need. Ray is not imported until `build` is called, as it reads these variables when it is imported.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from service.ray.environment import environment
from service.version import install_command

if TYPE_CHECKING:
    from ray.serve import Application

__all__ = ["build", "environment"]


def build(args: Mapping[str, Any]) -> "Application":
    """Return the Ray Serve application that serves models: `serve.run(build({"models": "models"}))`.

    Args:
        args: settings by their names, and `deployment`: the deployment options of the replicas, docs/guides/ray.md.

    Raises:
        SettingsError: an argument is unknown or invalid, or has no meaning in a replica.
        ImportError: Ray Serve is not installed; says how to install it.
    """
    from service.ray.arguments import read_arguments  # noqa: PLC0415  # see above

    settings, options = read_arguments(args)
    try:
        from service.ray.application import make_application  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise ImportError(f"{error}; Ray Serve comes with: {install_command('ray')}") from error
    return make_application(settings, options)
