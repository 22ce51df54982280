"""Models that change while they are served, and models that are kept elsewhere.

- `source` chooses where models come from; `poller` looks for changes there, and has the repository load what has
  changed; `poll_status` counts;
- `store_source` lists a `remote_store`, which `object_store` or `hugging_face` reads; `store_errors` words what went
  wrong; `model_paths` finds the models in a listing;
- `fetch` brings the files of a model into the `file_cache`, and checks them, by `checksums` as well.
"""
