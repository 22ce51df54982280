"""Networks of other packages, exported, checked and timed: `make zoo`.

Their weights come from a seed. The packages are those of requirements.txt and packages.txt; `make zoo` installs them
into an environment of their own. `make test` runs the tests of the report and the runner, which need none of them.
"""
