"""Made-up launches of strategy hybrid that send a wanted number of bytes."""

from __future__ import annotations

from scaleproof.claims.made_up import MadeUp, Wanted, possible


def made_up(wanted: Wanted) -> MadeUp:
    """A launch that sends so many times what the formulas predict for a step, by our count and by interfaces'."""
    case, predicted = wanted.case, 1 << 30
    shrink = 1.0 if case.plugin("fabric").predicted else case.shrink
    sent = possible(wanted.known) * predicted / shrink
    facts = {"hybrid": {"sent": {"all": sent}, "formula": {"all": predicted}, "groups": 0}}
    return MadeUp(facts=facts, wire_bytes=round(sent * case.value("steps")))


def made_up_choice(wanted: Wanted) -> MadeUp:
    """A launch of a block in which the chosen number of groups sends so many times what each other number sends."""
    return made_up(Wanted(wanted.case, 1.0 if wanted.case.value("strategy.groups", 0) else wanted.value))
