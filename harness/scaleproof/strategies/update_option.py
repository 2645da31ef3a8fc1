"""When parameters on servers are updated: after every message of a worker, or once per step of all workers."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from scaleproof.spec.plugins import Options

UpdateOrder = Literal["asynchronous", "synchronous"]
_EARLIER = {"each": "asynchronous", "one_by_one": "asynchronous", "together": "synchronous"}
"""Words of earlier records."""


class UpdateOptions(Options):
    """Options of strategies with `update`. Records with the earlier words, `moves` among them, can still be read."""

    update: UpdateOrder = "asynchronous"

    @model_validator(mode="before")
    @classmethod
    def _earlier_words(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = dict(values)
        if values.get("moves") in _EARLIER:
            values.setdefault("update", values.pop("moves"))
        if isinstance(update := values.get("update"), str):
            values["update"] = _EARLIER.get(update, update)
        return values
