"""Models that change while they are served, and models that are kept elsewhere.

- `source` chooses where models come from; `poller` looks for changes there, and has the repository load them;
- `store_source` lists what `object_store` or `hugging_face` reads, of which `model_paths` finds the models, and fetches
  a model into a folder of the `state_cache`; `checksums` checks that its upload is over; `store_errors` words what
  went wrong.
"""
