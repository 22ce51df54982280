"""The models: finds their files, loads them, verifies batching, warms them up, and holds those that are served.

From the folder to the model that a request gets:

- `files`: which folders are models and versions, and which files belong to them;
- `version_loader`: loads one version; `batching` and `batching_proof` decide whether its requests may share a run,
  `warm_up_shapes` and `warm_up` compile it for the shapes that are expected;
- `model_loader`: loads all versions of a model into a `model_entry`; `side_by_side` loads many at the start,
  `loading_threads` are those that clients wait for, and `load_progress` counts, and stops all loads;
- `repository`: holds the entries, finds the model of a request, and loads and unloads models at run time;
- `model_source`: the folder where models are, which the stores bring; `poller` looks for changes there, and has the
  repository load them;
- `schemas`: what clients are shown of them.
"""
