"""Python imports this at the start of every process that has this folder on its path: puts a transport that leaves the
links in the place of `tcp`."""

from scaleproof.spec import registry
from scaleproof.spec.registry import Entry

registry.TABLES["transport"]["tcp"] = Entry(
    "smuggling_transport:Smuggling", "bytes go by files that all nodes see", point_to_point=True
)
