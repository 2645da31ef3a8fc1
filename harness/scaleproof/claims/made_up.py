"""Made-up launches: what a launch would leave behind if a metric had a wanted value. Each metric has a generator beside
it, so that a claim can be shown to fall both ways before anything is run (claims/power.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd

from scaleproof.core.record_schema import Code, InputCheck, RankNetwork, RankStatus, Record
from scaleproof.spec.case import AnyCase
from scaleproof.spec.evidence import planned_evidence

SECOND = 1_000_000_000
"""Nanoseconds."""
Value = float | None
CODE = Code(version="made up", commit=None, dirty=None, digest="made up")


class ImpossibleValue(ValueError):
    """No launch of the case can have the wanted value."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a generator is asked for: a launch of `case` in which the metric has `value`, at a message size where it is
    per size. Of a metric of pairs: None is the base, and `value` is that of the pair with this base. Of a metric of
    blocks: the value of a block in which every launch is made for it, with one launch of each of the cases `block`."""

    case: AnyCase
    value: Value
    nbytes: int | None = None
    block: tuple[AnyCase, ...] = ()

    @property
    def known(self) -> float:
        """The wanted value of a launch that cannot be a base."""
        assert self.value is not None
        return self.value


@dataclass(frozen=True, slots=True)
class Event:
    """A row of samples for each of `ranks` (None: all ranks); times in s."""

    name: str
    start_s: float = 0.0
    end_s: float = 0.0
    ranks: tuple[int, ...] | None = None
    step: int = 0
    nbytes: int = 0
    value: float = float("nan")
    warmup: bool = False


@dataclass(frozen=True, slots=True)
class MadeUp:
    """What a made-up launch leaves behind. `facts`: of each of its ranks. `wire_bytes`: what the interface of each
    rank's own node counted."""

    events: tuple[Event, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    transport: Mapping[str, Any] = field(default_factory=dict)
    parameters: np.ndarray | None = None
    inputs: tuple[InputCheck, ...] = ()
    wire_bytes: int | None = None

    def value(self, metric: Callable[[Record, pd.DataFrame], float | None], case: AnyCase) -> float:
        """A metric of this launch; ImpossibleValue where it has none."""
        value = metric(self.record(case), self.samples(case.ranks))
        if value is None:
            raise ImpossibleValue("a launch of this case has no value")
        return value

    def record(self, case: AnyCase, plan_index: int = 0, seed: int = 0, campaign: int = 0) -> Record:
        """The record of a launch that ended well, on a machine with a core for every thread."""
        fields: dict[str, Any] = {
            "launch": f"{case.case_id}-{plan_index}",
            "case_id": case.case_id,
            "case": case,
            "plan_index": plan_index,
            "campaign": campaign,
            "campaign_id": "" if case.plugin("fabric").predicted else f"made up {campaign}",
            "seed": seed,
            "evidence": planned_evidence(case),
            "ranks": [_rank(rank, self.facts) for rank in range(case.ranks if self.facts else 1)],
            "transport": dict(self.transport),
            "inputs": list(self.inputs),
            "network": [] if self.wire_bytes is None else [self._node(rank) for rank in range(case.ranks)],
        }
        return _empty_record().model_copy(update=fields)

    def _node(self, rank: int) -> RankNetwork:
        counted = self.wire_bytes or 0
        before, after = ({"eth0": {"tx_bytes": nbytes, "rx_bytes": nbytes}} for nbytes in (0, counted))
        return RankNetwork(rank=rank, namespace=str(rank), asked_bytes=counted, before=before, after=after)

    def samples(self, ranks: int) -> pd.DataFrame:
        """The samples of a launch of so many ranks. Not to be changed: equal launches share them."""
        return _samples(self.events, ranks)


@cache
def _empty_record() -> Record:
    fields: dict[str, Any] = {
        "size": "",
        "oversubscribed": False,
        "shared_cores": False,
        "status": "ok",
        "failure": None,
        "checks": [],
        "warnings": [],
        "code": CODE,
        "machine": "made up",
        "environment": {},
        "started_at": "",
        "wall_s": 0.0,
        "command": [],
    }
    return Record.model_construct(**fields)


def _rank(rank: int, facts: Mapping[str, Any]) -> RankStatus:
    ended: dict[str, Any] = {"pid": 0, "exit_code": 0, "signal": None, "status": "ok", "code": None, "message": ""}
    return RankStatus.model_construct(rank=rank, step=0, operation="", facts=dict(facts), **ended)


@lru_cache(maxsize=512)
def _samples(made: tuple[Event, ...], ranks: int) -> pd.DataFrame:
    every = tuple(range(ranks))
    rows = [(event, rank) for event in made for rank in (every if event.ranks is None else event.ranks)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(event.name for event in made))}
    columns = {
        "rank": np.array([rank for _, rank in rows], np.int16),
        "event": pd.Categorical.from_codes([numbers[event.name] for event, _ in rows], list(numbers)),
        "step": np.array([event.step for event, _ in rows], np.int32),
        "warmup": np.array([event.warmup for event, _ in rows], bool),
        "start_ns": np.array([round(event.start_s * SECOND) for event, _ in rows], np.int64),
        "end_ns": np.array([round(event.end_s * SECOND) for event, _ in rows], np.int64),
        "nbytes": np.array([event.nbytes for event, _ in rows], np.int64),
        "value": np.array([event.value for event, _ in rows], float),
    }
    return pd.DataFrame(columns, copy=False)


MakeUp = Callable[[Wanted], MadeUp]


def events(*made: Event) -> MadeUp:
    """A launch with these events alone."""
    return MadeUp(made)


def lasting(event: str, made_of: Callable[[float, Wanted], float] = lambda value, wanted: value) -> MakeUp:
    """Launches in which one event lasts so many s on every rank: the value itself, or what `made_of` makes of it."""
    return partial(_lasting, event=event, made_of=made_of)


def _lasting(wanted: Wanted, event: str, made_of: Callable[[float, Wanted], float]) -> MadeUp:
    seconds = possible(made_of(wanted.known, wanted))
    return events(Event(event, 0.0, seconds, nbytes=wanted.nbytes or 0))


def reporting(event: str, ranks: tuple[int, ...] | None = (0,)) -> MakeUp:
    """Launches in which one event has the value."""
    return partial(_reporting, event=event, ranks=ranks)


def _reporting(wanted: Wanted, event: str, ranks: tuple[int, ...] | None) -> MadeUp:
    return events(Event(event, 0.0, 0.001, ranks=ranks, nbytes=wanted.nbytes or 0, value=wanted.known))


def with_facts(facts_of: Callable[[float, Wanted], Mapping[str, Any]]) -> MakeUp:
    """Launches whose ranks leave facts alone."""
    return lambda wanted: MadeUp(facts=facts_of(wanted.known, wanted))


def possible(value: float, least: float = 0.0, most: float = float("inf")) -> float:
    """The value; ImpossibleValue outside of the bounds."""
    if not least <= value <= most:
        raise ImpossibleValue(f"{value:g} is not between {least:g} and {most:g}")
    return value


def trained(case: AnyCase, samples_per_s: float, further: Iterable[Event] = ()) -> MadeUp:
    """A training at a rate: one step per rank over the common wall time."""
    workers = case.value("workers", case.ranks)
    share = (case.value("minibatch") or 0) // workers
    if not samples_per_s > 0 or not share:
        raise ImpossibleValue(f"a throughput of {samples_per_s:g}")
    wall = share * workers / samples_per_s
    step = Event("step", 0.0, wall, ranks=tuple(range(case.ranks - workers, case.ranks)))
    return events(Event("start"), step, Event("end", wall, wall), *further)
