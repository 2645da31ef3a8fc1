"""Where this installation lies: the folder that Python imports the package from, and the checkout around it."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IMPORT_ROOT = PACKAGE.parent
"""What a child process needs on its PYTHONPATH to import this package."""
PROJECT = IMPORT_ROOT.parent
"""The checkout: suites/, clusters/ and docs/ stand here."""
