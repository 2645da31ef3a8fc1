"""Runs a suite's own rank program on this rank, over the mailbox of the case's transport."""

from __future__ import annotations

from collections.abc import Callable

from scaleproof.core.context import RankContext
from scaleproof.core.transport_errors import TransportError
from scaleproof.programs.process_driver import Driven, ProcessDriver
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase
from scaleproof.spec.plugins import loaded


def run_program(context: RankContext, form: Callable[[OwnCase, int, ProcessDriver], Driven]) -> None:
    """From the start of its mailbox to its end. Raises TransportError where the transport has none."""
    case = context.case
    assert isinstance(case, OwnCase)
    plugin = case.plugin("transport")
    if plugin.mailbox is None:
        have = ", ".join(registry.with_trait("transport", "mailbox"))
        raise TransportError(
            f"a rank program needs a transport with a mailbox ({have}), not {case.transport!r}: {plugin.no_mailbox}"
        )
    driver = ProcessDriver(context, case, loaded(plugin.mailbox)(context))
    driver.run(lambda: form(case, context.rank, driver))
