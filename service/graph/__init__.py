"""A model's graph as JSON and as drawings, for `GET /graph`."""
