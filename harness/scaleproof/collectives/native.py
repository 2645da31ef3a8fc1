"""The transport's own collectives, whatever algorithm its library chooses."""

from __future__ import annotations

from scaleproof.spec.plugins import CollectivePlugin

PLUGIN = CollectivePlugin(
    name="native",
    summary="the transport's own collectives, by its library's algorithms",
    implementation=None,
)
