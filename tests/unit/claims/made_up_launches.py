"""Claims of the suites judged by made-up launches, as many as a size plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from scaleproof.claims.claims_file import ClaimResult
from scaleproof.claims.claims_yaml import Claim, load_claims
from scaleproof.claims.judge import judge_claims
from scaleproof.claims.made_up import MadeUp, Wanted
from scaleproof.claims.made_up_store import MadeUpStore
from scaleproof.claims.noise_floor import KnownFloor
from scaleproof.spec.plan import PlannedLaunch, plan
from scaleproof.spec.suite import Suite, load_suite

SUITES = Path(__file__).parents[3] / "suites"


def claim_of(suite: Suite, claim_id: str) -> Claim:
    """One claim of a suite."""
    return next(claim for claim in load_claims(suite) if claim.form.id == claim_id)


def judged(
    claim_id: str, made: Callable[[PlannedLaunch], MadeUp], floor: float = 0.001, size: str = "smoke"
) -> ClaimResult:
    """The claim's result where each planned launch of its experiment is as `made` makes it, on a machine with this
    noise floor for timings."""
    suite = load_suite(claim_id.partition(".")[0], SUITES)
    claim, store = claim_of(suite, claim_id), MadeUpStore()
    for launch in plan(suite, str(claim.form.experiment), size):
        store.add(launch, made(launch))
    known = KnownFloor(floor) if claim.metric is not None and claim.metric.timing else KnownFloor()
    ((result,),) = judge_claims(suite, size, store, [claim], lambda *_, **__: known)
    return result


def with_value(claim_id: str, value: float) -> Callable[[PlannedLaunch], MadeUp]:
    """Launches in which the claim's metric has this value."""
    claim = claim_of(load_suite(claim_id.partition(".")[0], SUITES), claim_id)
    make = claim.metric.made_up if claim.metric is not None else None
    assert make is not None, claim_id
    return lambda launch: make(Wanted(launch.case, value, claim.form.nbytes, (launch.case,)))
