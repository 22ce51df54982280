"""Starts the server with what the examples add: `python -m examples.serve serve --models DIR`."""

import sys

from examples import gate, leaky_integrator, model_labels, octet_stream, regression, worker_load
from service.cli import main

EXTENSIONS = (gate, leaky_integrator, model_labels, octet_stream, regression, worker_load)
"""Importing a module registers what it adds; nothing else is to be done."""

if __name__ == "__main__":
    sys.exit(main())
