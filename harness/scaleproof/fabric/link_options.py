"""Options of fabrics that build their own links."""

from __future__ import annotations

from pydantic import Field, model_validator

from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import Options


class LinkOptions(Options):
    """One switch with equal links."""

    link_mbit: float | None = Field(
        None, gt=0, description="Rate set on every link of the fabric, Mbit/s; null: no limit."
    )
    link_delay_ms: float = Field(
        0.0,
        ge=0,
        description="Delay from node to node, one way, ms; each of the two links of a star has half of this delay.",
    )


class ClusterOptions(LinkOptions):
    """A described cluster, or one switch with equal links."""

    cluster: str | None = Field(
        None,
        description="Nodes and links: a name in clusters/, or a file's path; null: one switch, with links according "
        "to link_mbit and link_delay_ms.",
    )

    @model_validator(mode="after")
    def _rates_are_said_once(self) -> ClusterOptions:
        if self.cluster is not None and (self.link_mbit is not None or self.link_delay_ms):
            message = "its description has the rates and delays; leave out link_mbit and link_delay_ms"
            raise FieldError("cluster", message)
        return self
