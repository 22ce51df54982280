"""What can be configured: the server's settings, `model.toml`, and the limits of a request."""
