"""Python imports this at the start of every process that has this folder on its path: puts the faulty program in the
place of `collective`."""

import dataclasses

from scaleproof.spec import registry

registry.replace(dataclasses.replace(registry.get("program", "collective"), implementation="faulty_program:run"))
