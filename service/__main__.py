"""`python -m service` is `kuiper`."""

import sys

from service.cli import main

sys.exit(main())
