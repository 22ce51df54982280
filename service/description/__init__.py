"""The API's description: OpenAPI with examples, and the page that shows it."""
