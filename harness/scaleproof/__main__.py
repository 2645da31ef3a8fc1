"""`python -m scaleproof` is `scaleproof`."""

import sys

from scaleproof.cli import main

sys.exit(main())
