"""Text files that readers see whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel


def put_form(path: Path, form: BaseModel) -> Path:
    """Write a form as JSON by one rename, and make its folder; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(form.model_dump_json(indent=1) + "\n")
    draft.rename(path)
    return path
