"""`POST /infer`: options of requests, and encoding of responses."""
