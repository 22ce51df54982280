"""uvicorn: how the server starts and shuts down, its connections, TLS."""
