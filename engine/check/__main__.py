"""`python -m engine.check MODEL`."""

import sys

from engine.check import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
