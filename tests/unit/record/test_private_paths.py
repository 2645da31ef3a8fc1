"""A record does not reveal paths of its user."""

from __future__ import annotations

import sys
from pathlib import Path

from scaleproof.record.private_paths import without_private_paths


def test_private_paths_become_their_role_and_all_else_stays() -> None:
    cleaned = without_private_paths(
        {"command": [f"{sys.prefix}/bin/python -m x", 3, None], "note": f"see {Path.home()}/notes", "plain": {"a": 1.5}}
    )
    assert cleaned == {
        "command": ["(environment)/bin/python -m x", 3, None],
        "note": "see ~/notes",
        "plain": {"a": 1.5},
    }
