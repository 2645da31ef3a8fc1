"""Python imports this at the start of every process that has this folder on its path: puts the faulty program in the
place of `collective`."""

from scaleproof.spec import registry
from scaleproof.spec.registry import Entry

registry.TABLES["program"]["collective"] = Entry("faulty_program:run", "fails as the environment says")
