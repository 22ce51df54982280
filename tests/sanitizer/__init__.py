"""Runs compiled programs with every access to memory checked against what the call at work was given.

`run.py` runs a program call by call; `emitter.py` writes kernels whose loads and stores ask before they are done;
`guard.py` is what they ask; `shadow.py` keeps, for each element of memory, who may do what with it.
"""
