"""Arguments that metrics of this paper have in common."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from scaleproof.pipelines.schemes import schemes
from scaleproof.spec import registry
from scaleproof.workloads.networks import Network


def _is_scheme(name: str) -> str:
    if name not in schemes():
        raise ValueError(registry.nearest(name, list(schemes())))
    return name


Scheme = Annotated[str, AfterValidator(_is_scheme), Field(description="A scheme of docs/pipelines.md.")]
Stages = Annotated[int, Field(ge=2, le=4096, description="D, stages.")]
NetworkName = Literal["bert48", "gpt2_64"]


@lru_cache
def network(name: str) -> Network:
    """A network of the paper, by its name here."""
    found: Network = registry.load("workload", name)(None, 1.0)
    return found
