"""What README and docs show that has its source elsewhere: figures, tables of settings and metrics, the HTTP API.

`make figures` writes all of it; `tests/docs/test_generated.py` fails when a page is out of date.
"""
