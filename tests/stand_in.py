"""Another implementation for a registered name, as long as a test runs."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from scaleproof.spec import registry
from scaleproof.spec.plugins import Kind


def stand_in(patch: pytest.MonkeyPatch, kind: Kind, name: str, implementation: Any) -> None:
    """`load` returns this implementation, in this process and in those that it forks."""
    replaced = dict(registry._replaced)
    replaced[kind, name] = dataclasses.replace(registry.get(kind, name), implementation=implementation)
    patch.setattr(registry, "_replaced", replaced)
