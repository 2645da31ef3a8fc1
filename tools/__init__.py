"""Commands beside the package: set-up, builds, small clusters, reference results. Set-up runs before the package is
installed; this file makes its source importable."""

import sys
from pathlib import Path

SOURCE = str(Path(__file__).resolve().parents[1] / "harness")
if SOURCE not in sys.path:
    sys.path.insert(0, SOURCE)
