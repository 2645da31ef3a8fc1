"""Files that readers see whole or not at all: each is written under another name, then renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

FormT = TypeVar("FormT", bound="BaseModel")


def write_text(path: Path, text: str) -> Path:
    """Write a text file, and make its folder; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.rename(path)
    return path


def write_form(path: Path, form: BaseModel) -> Path:
    """Write a pydantic model as JSON."""
    return write_text(path, form.model_dump_json(indent=1) + "\n")


def read_form(path: Path, form: type[FormT], remedy: str) -> FormT | None:
    """What `write_form` wrote; None where there is no such file. SpecError with `remedy` for a file that another
    version of the model wrote."""
    from pydantic import ValidationError

    from scaleproof.spec.errors import SpecError
    from scaleproof.spec.locate import shown

    try:
        return form.model_validate_json(path.read_bytes()) if path.exists() else None
    except ValidationError:
        raise SpecError(f"{shown(path)}: {remedy}") from None


def write_json(path: Path, value: Any) -> Path:
    """Write plain values as JSON."""
    return write_text(path, json.dumps(value))


def read_json(path: Path) -> Any:
    """What `write_json` wrote; None where there is no such file, or no whole one."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
