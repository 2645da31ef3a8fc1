"""Where this installation lies: the folder that Python imports the package from, the checkout around it, and the user's
cache. Imports only the standard library, since set-up uses it before anything is installed."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IMPORT_ROOT = PACKAGE.parent
"""What a child process needs on its PYTHONPATH to import this package."""
PROJECT = IMPORT_ROOT.parent
"""The checkout: suites/, clusters/ and docs/ stand here."""


def user_cache() -> Path:
    """Folder of what is made once for this user; deleting it costs only time."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home.absolute() / "scaleproof"
