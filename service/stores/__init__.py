"""Models that change while they are served, and models that are kept elsewhere.

- `poller` looks for changes of a source, and has the repository load what has changed; `poll_status` counts.
"""
