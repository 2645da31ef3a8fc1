"""What a simulator gives for one launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Predicted:
    """Samples in the record's form, and what they follow from."""

    samples: pa.Table
    facts: dict[str, Any]
