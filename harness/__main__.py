"""`python -m harness` is `scaleproof`."""

import sys

from harness.cli import main

sys.exit(main())
