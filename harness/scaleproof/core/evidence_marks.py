"""Marks of a record's evidence, which its readers see behind its level, and warnings that say which times count."""

from __future__ import annotations

from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError

EXCLUDING = ("saturated",)
"""Warnings of launches whose times are those of an overloaded machine, no longer those of the emulated cluster."""
LINK = "link"
"""Warning of a launch whose links, before its ranks started, did not give the rate or the delay that was set."""
TRAJECTORY = "trajectory computed"
"""The detail of evidence from virtual time: gradients are real, and only times are simulated."""
TRAJECTORY_MEANING = (
    "Losses and accuracies are those of real gradients of real data, each at the parameters that its replica had at "
    "that moment; only times are simulated."
)
"""The same for a reader of pages."""
SOFT_ROCE = "soft-RoCE"
"""The detail of evidence from verbs on a device made of software."""


def soft_roce(fabric: str, transport: str | None) -> bool:
    """Whether verbs ran on an emulated device: a transport that needs one, on nodes with kernels of their own."""
    try:
        return bool(
            transport and registry.get("transport", transport).devices and registry.get("fabric", fabric).own_kernels
        )
    except SpecError:  # a plugin that is not installed here
        return False


def evidence_text(evidence: str, fabric: str, transport: str | None) -> str:
    """See Record.evidence_text."""
    return f"{evidence}, {SOFT_ROCE}" if soft_roce(fabric, transport) else evidence
