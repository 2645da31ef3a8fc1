"""Python imports this at the start of every process that has this folder on its path: puts a transport that sends more
than it counts in the place of `tcp`."""

import dataclasses

from scaleproof.spec import registry

registry.replace(dataclasses.replace(registry.get("transport", "tcp"), implementation="repeating_transport:Repeating"))
