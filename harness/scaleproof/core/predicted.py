"""What a simulator gives for one launch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Predicted:
    """Samples in the record's form, what they follow from, and checks of what was computed (as in the record)."""

    samples: pa.Table
    facts: dict[str, Any]
    checks: list[dict[str, Any]] = field(default_factory=list)
