"""Which claims the planned launches can decide on a machine: the effect that a claim states against the smallest one
that the launches resolve."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaleproof.claims.claim_form import ORDERS
from scaleproof.claims.claims_yaml import Claim
from scaleproof.claims.made_up import ImpossibleValue
from scaleproof.claims.noise_floor import machine_floor
from scaleproof.claims.power import Launches, Noise, against_prediction, compared_launches, unjudged
from scaleproof.claims.wanted_values import stated_effect
from scaleproof.core.record_schema import Evidence
from scaleproof.record.machine import Floor, MachineProfile
from scaleproof.spec.case import AnyCase
from scaleproof.spec.launch_kind import kind_on
from scaleproof.stats import resolution

STEPS = 6
"""Halvings of the noise, to find how much of it a claim can bear: to 2 % of it."""


@dataclass(frozen=True, slots=True)
class Undecidable:
    """A claim that the planned launches cannot decide. `resolution` and `effect` are shares; None: too few launches for
    any verdict. `would_do`: launches that would decide it; None: no number does. `single`: single launches are
    compared, so that `resolution` is their noise floor and `effect` the largest floor that the claim can bear.
    `impossible`: where the claim stands and why none of these launches can hold it, or none fail it."""

    claim: str
    evidence: Evidence
    launches: int
    would_do: int | None
    resolution: float | None = None
    effect: float | None = None
    single: bool = False
    impossible: str = ""

    @property
    def sentence(self) -> str:
        """What a reader is told."""
        if self.impossible:
            return f"{self.claim}: cannot be decided with the planned cases: {self.impossible}"
        would = "no number of launches would do" if self.would_do is None else f"{self.would_do} launches would do"
        if self.resolution is None or self.effect is None:
            return f"{self.claim}: cannot be decided with {self.launches} launches; {would}"
        shares = f"resolution {100 * self.resolution:.3g} %, effect {100 * self.effect:.3g} %"
        if self.single:
            shares = f"noise floor of one launch {100 * self.resolution:.3g} %, it can bear {100 * self.effect:.3g} %"
        return f"{self.claim}: cannot be decided on this machine: {shares}; {would}"


def undecidable(
    claim: Claim, launches: Launches, noise_of: Callable[[Claim, Sequence[AnyCase]], Noise | None]
) -> list[Undecidable]:
    """At each level of evidence that the claim will have, why it cannot be decided. `noise_of`: what the machine adds;
    None where that is not known."""
    found = []
    for evidence in launches.evidences(claim) if unjudged(claim, launches.size) is None else ():
        count, least = launches.count(claim, evidence), launches.for_a_verdict(claim, evidence)
        if count < least:
            found.append(Undecidable(claim.form.id, evidence, count, least))
        elif noise := noise_of(claim, launches.cases(claim, evidence)):
            beyond_floor = claim.metric is not None and claim.metric.noise == "inside"
            unresolved = _beyond_noise(claim, evidence, launches, noise) if beyond_floor else None
            found += [unresolved] if unresolved else _unresolved(claim, evidence, count, noise)
    return found


def machine_noise(profile: MachineProfile | None, cores: float, claim: Claim, cases: Sequence[AnyCase]) -> Noise | None:
    """What a machine adds to a metric of such cases, as calibration measured it: the largest floor of their kinds. None
    for predictions, for what is no timing, and where it measured no floor of one of the kinds. Cases with more threads
    than cores do not count: their times are not judged."""
    floors = _floors(profile, cores, claim, cases)
    known = [floor for floor in floors if floor is not None]
    if not known or len(known) < len(floors):
        return None
    return Noise(max(floor.spread for floor in known), max(floor.share for floor in known))


def lacks_floor(profile: MachineProfile | None, cores: float, claim: Claim, cases: Sequence[AnyCase]) -> bool:
    """Whether no floor was measured of one of the kinds of such cases, so that their times decide nothing."""
    return None in _floors(profile, cores, claim, cases)


def _floors(profile: MachineProfile | None, cores: float, claim: Claim, cases: Sequence[AnyCase]) -> list[Floor | None]:
    """The floor of each kind of such cases; none of a metric that is no timing."""
    metric = claim.metric
    if metric is None or not metric.timing:
        return []
    kinds = {kind for case in cases if (kind := kind_on(case, cores)) is not None}
    return [machine_floor(profile, metric, kind, claim.form.nbytes) for kind in kinds]


def resolution_of(claim: Claim, evidence: Evidence, noise: Noise) -> Callable[[int], float]:
    """The smallest effect, a share, that a number of launches resolves."""
    metric = claim.metric
    compared = claim.form.against is not None and metric is not None and metric.pair is None
    compared = compared and not against_prediction(claim, evidence)
    ordered = claim.form.rule is not None and claim.form.rule.name in ORDERS
    of_launches = resolution.of_ratio if compared or ordered else resolution.of_value

    def resolved(count: int) -> float:
        floor = 0.0
        if metric is not None and metric.timing and metric.noise != "inside":
            launches = compared_launches(metric, count)
            floor = noise.known(launches).used_for(metric, claim.form.rule).share or 0.0
        return of_launches(noise.spread, count, floor=floor)

    return resolved


def _unresolved(claim: Claim, evidence: Evidence, count: int, noise: Noise) -> list[Undecidable]:
    effect, of_launches = stated_effect(claim), resolution_of(claim, evidence, noise)
    if effect is None or of_launches(count) <= effect:
        return []
    would_do = resolution.launches_needed(effect, of_launches)
    return [Undecidable(claim.form.id, evidence, count, would_do, of_launches(count), effect)]


def _beyond_noise(claim: Claim, evidence: Evidence, launches: Launches, noise: Noise) -> Undecidable | None:
    """Of a metric that counts what lies beyond the floor of one launch: how much less noise would let it fall both
    ways; None where it does. Launches that hold it or fail it may not exist: then no noise decides."""
    try:
        return _least_noise(claim, evidence, launches, noise)
    except ImpossibleValue as none:
        count = launches.count(claim, evidence)
        why = f"no launch can hold it, or none can fail it ({none}); {claim.place}"
        return Undecidable(claim.form.id, evidence, count, None, impossible=why)


def _least_noise(claim: Claim, evidence: Evidence, launches: Launches, noise: Noise) -> Undecidable | None:
    if launches.power(claim, evidence, noise).both_ways:
        return None
    quiet = launches.power(claim, evidence, _part(noise, 0.0))
    if not quiet.both_ways:
        holds, fails = quiet.holds[0], quiet.fails[0]
        raise ImpossibleValue(f"without noise, launches made to hold it are {holds}, and such made to fail it {fails}")
    none, all_of_it = 0.0, 1.0
    for _ in range(STEPS):
        half = (none + all_of_it) / 2
        both = launches.power(claim, evidence, _part(noise, half)).both_ways
        none, all_of_it = (half, all_of_it) if both else (none, half)
    here, bearable = (_part(noise, share).known(1).of_one_launch for share in (1.0, none))
    return Undecidable(claim.form.id, evidence, launches.count(claim, evidence), None, here, bearable, single=True)


def _part(noise: Noise, share: float) -> Noise:
    """So much of the noise, on the scale of logarithms."""
    return Noise(share * noise.spread, None if noise.floor is None else math.expm1(share * math.log1p(noise.floor)))
