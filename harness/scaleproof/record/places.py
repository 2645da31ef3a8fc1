"""Where this user keeps files explains no number, and records are published: such places are told by what they are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ENVIRONMENT, HOME = "(environment)", "~"


def without_places(value: Any) -> Any:
    """The same plain data with this Python's environment and the user's home folder replaced in every text."""
    if isinstance(value, dict):
        return {key: without_places(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_places(inner) for inner in value]
    if not isinstance(value, str):
        return value
    home = str(Path.home())
    text = value.replace(sys.prefix, ENVIRONMENT)
    return text.replace(home, HOME) if len(home) > 1 else text
