"""The HTTP server, built on uvicorn: start-up and shutdown, connections, TLS."""
