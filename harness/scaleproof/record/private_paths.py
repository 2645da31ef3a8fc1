"""Replaces private paths in a record by names: the paths explain no result, and records are published."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ENVIRONMENT, HOME = "(environment)", "~"


def without_private_paths(value: Any) -> Any:
    """The same plain data with the folder of this Python's environment and the user's home replaced in every text."""
    if isinstance(value, dict):
        return {key: without_private_paths(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_private_paths(inner) for inner in value]
    if not isinstance(value, str):
        return value
    home = str(Path.home())
    text = value.replace(sys.prefix, ENVIRONMENT)
    return text.replace(home, HOME) if len(home) > 1 else text
