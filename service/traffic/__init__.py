"""Traffic between the versions of a model: which version serves a request that names none.

- `split`: turns shares into choices, one after the other or by a value;
- `model_traffic`: the traffic of one model since it was loaded: its split, and what was chosen;
- `traffic`: that of all models, where routes ask for a version;
- `shadows`: runs requests on another version as well, one after the other, and compares the outputs;
- `view`: the traffic as the API shows it.
"""
