"""`python -m engine.calibration MODEL --data EXAMPLES.npz`."""

import sys

from engine.calibration.command import main

sys.exit(main())
