"""Traffic between the versions of a model: which version answers a request that names none.

- `split`: turns shares into choices, one after the other or by a value;
- `model_traffic`: the traffic of one model since it was loaded: its split, and what was chosen;
- `traffic`: that of all models, where routes ask for a version.
"""
