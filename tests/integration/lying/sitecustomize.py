"""Python imports this at the start of every process that has this folder on its path: puts a transport that changes
bytes in the place of `tcp`."""

from scaleproof.spec import registry
from scaleproof.spec.registry import Entry

registry.TABLES["transport"]["tcp"] = Entry(
    "lying_transport:Lying", "changes what rank 1 receives", point_to_point=True
)
