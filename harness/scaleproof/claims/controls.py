"""Negative controls: what the result of a control says about the claimed effect, and the verdict after it."""

from __future__ import annotations

from scaleproof.claims.outcome import (
    Bound,
    ControlFacts,
    ControlFinding,
    IntervalFacts,
    LaunchesFacts,
    Outcome,
    RangeFacts,
    Verdict,
)

POSITIVE: tuple[Verdict, ...] = ("reproduced", "direction only")
OVERRULING: tuple[ControlFinding, ...] = ("effect", "undecided", "not measured")
WORST_FIRST: tuple[ControlFinding, ...] = (*OVERRULING, "less effect", "no difference", "no effect")


def with_control(outcome: Outcome, control: Outcome | None) -> Outcome:
    """The verdict after the negative control: a positive verdict needs a control that was judged and does not show the
    effect, else it is inconclusive."""
    finding = control_finding(outcome, control)
    overrules = finding in OVERRULING and outcome.verdict in POSITIVE
    verdict = "inconclusive" if overrules else outcome.verdict
    facts = ControlFacts(outcome=control, finding=finding, overrules=overrules)
    return outcome.model_copy(update={"verdict": verdict, "control": facts})


def control_finding(outcome: Outcome, control: Outcome | None) -> ControlFinding:
    """What the negative control of a claim shows. Of a control over several cases the worst finding counts.

    An identity is absent from a control only if no launch keeps it: one stray launch proves nothing. The rule of an
    order has no size of effect that a control without it could lie outside of: its interval reaches both sides of 1 at
    any number of launches. There the test must find no difference, or the control's whole interval must be nearer to 1
    than the claim's.
    """
    if control is None:
        return "not measured"
    without = control.facts
    if isinstance(without, RangeFacts):
        return min((control_finding(outcome, point.outcome) for point in without.points), key=WORST_FIRST.index)
    if isinstance(without, LaunchesFacts) and 0 < without.outside < without.launches:
        return "undecided"
    if control.verdict in ("reproduced", "not reproduced", "direction only"):
        return "effect" if control.holds else "no effect"
    if isinstance(without, IntervalFacts) and without.region.bound in (Bound.BELOW_BASE, Bound.ABOVE_BASE):
        return _of_order(outcome, without)
    return "undecided"


def _of_order(outcome: Outcome, without: IntervalFacts) -> ControlFinding:
    """The finding of a control of an order that its rule leaves open."""
    ours = outcome.facts
    if without.finding == "no difference":
        return "no difference"
    if isinstance(ours, IntervalFacts) and ours.interval is not None and without.interval is not None:
        below = without.region.bound is Bound.BELOW_BASE
        apart = without.interval.low > ours.interval.high if below else without.interval.high < ours.interval.low
        return "less effect" if apart else "undecided"
    return "undecided"
