"""uvicorn: its start and its end, connections, TLS."""
