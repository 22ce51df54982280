"""Several processes that serve one port: a supervisor that starts and replaces them."""
