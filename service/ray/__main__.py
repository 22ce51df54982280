"""`eval "$(python -m service.ray)"` sets the variables in a shell that Ray's processes need."""

import shlex

from service.ray.environment import environment

for name, value in environment().items():
    print(f"export {name}={shlex.quote(value)}")
