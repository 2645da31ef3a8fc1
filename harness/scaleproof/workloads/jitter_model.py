"""Variation of a rank's compute time: as fitted to a machine's launches (spread from step to step, spread between
ranks, and stragglers), or by a stated law. Replayed compute and the simulator draw the same factors from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from pydantic import BaseModel, ConfigDict

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.core.missing_input import MissingInput
from scaleproof.spec.straggler_law import NO_LAW, NODE_LAW, StragglerLaw, straggler_law

FILE = "jitter.json"


@dataclass(frozen=True, slots=True)
class Jitter:
    """Lognormal factors on a rank's compute time, each with median 1. `step_sigma`: standard deviation of the logarithm
    from step to step within a rank; `rank_sigma`: between ranks, constant during a launch; a share of
    `straggler_share` steps takes `straggler_factor` times as long."""

    step_sigma: float = 0.0
    rank_sigma: float = 0.0
    straggler_share: float = 0.0
    straggler_factor: float = 1.0

    def factors(self, ranks: int, seed: int, step: int) -> np.ndarray:
        """Factors of every rank in one step, determined by the seed."""
        lasting = np.random.default_rng((seed, 0)).standard_normal(ranks) * self.rank_sigma
        generator = np.random.default_rng((seed, 1, step))
        values = np.exp(lasting + generator.standard_normal(ranks) * self.step_sigma)
        straggles = generator.random(ranks) < self.straggler_share
        return np.where(straggles, values * self.straggler_factor, values)


@dataclass(frozen=True, slots=True)
class Stragglers:
    """Factors on a rank's compute time by a stated law (spec/straggler_law.py), drawn anew for each rank and step."""

    law: str
    numbers: tuple[float, ...]

    def factors(self, ranks: int, seed: int, step: int) -> np.ndarray:
        """Factors of every rank in one step, determined by the seed."""
        generator = np.random.default_rng((seed, 2, step))
        size, share = self.numbers
        chosen = generator.random(ranks) < share
        return np.where(chosen, self._drawn(size, generator, ranks), 1.0)

    def _drawn(self, size: float, generator: np.random.Generator, ranks: int) -> np.ndarray:
        if self.law == "lognormal":
            return generator.lognormal(0.0, size, ranks)
        if self.law == "pareto":
            return 1.0 + generator.pareto(size, ranks)
        if self.law == "exponential":
            return 1.0 + generator.exponential(size, ranks)
        return np.full(ranks, size)


class Variation(Protocol):
    """Whatever makes ranks compute longer or shorter."""

    def factors(self, ranks: int, seed: int, step: int) -> np.ndarray:
        """Factors on the compute time of every rank in one step."""


@dataclass(frozen=True, slots=True)
class HalfAsLate:
    """The same draws with half of what they add."""

    whole: Variation

    def factors(self, ranks: int, seed: int, step: int) -> np.ndarray:
        """Factors of every rank in one step."""
        return (1.0 + self.whole.factors(ranks, seed, step)) / 2


def slowest(variation: Variation, ranks: int, seed: int, steps: int) -> float:
    """Mean over steps of the largest factor of a rank."""
    return float(np.mean([variation.factors(ranks, seed, step).max() for step in range(steps)]))


class FittedJitter(BaseModel):
    """Jitter of one machine, with the launches that it was fitted to. A new fit replaces it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    machine: str
    code: str
    """Digest of the code that measured."""
    fitted_at: str
    suite: str
    experiment: str
    size: str
    steps: int
    """Number of steps that were used, over all ranks and launches."""
    step_sigma: float
    rank_sigma: float | None
    """None: no launch had two ranks."""
    straggler_share: float
    straggler_factor: float
    beyond: float
    """Share of the non-straggler steps outside the fitted 95 % range: 0.05 if the distribution is lognormal."""
    runs: tuple[str, ...]

    @property
    def law(self) -> StragglerLaw:
        """The law that is drawn from."""
        spread = (self.step_sigma, self.rank_sigma or 0.0, self.straggler_factor, self.straggler_share)
        return StragglerLaw("spread", spread)

    @property
    def jitter(self) -> Jitter:
        """The model that is drawn from."""
        return Jitter(self.step_sigma, self.rank_sigma or 0.0, self.straggler_share, self.straggler_factor)


def jitter_file(results: Path, machine: str) -> Path:
    """Path of a machine's jitter."""
    return results / "machines" / machine / FILE


def read_jitter(results: Path, machine: str) -> FittedJitter | None:
    """A machine's jitter; None when none was fitted. Raises SpecError for a file of another version."""
    remedy = "no jitter of this version; `scaleproof fit SUITE EXPERIMENT` makes a new one"
    return read_form(jitter_file(results, machine), FittedJitter, remedy)


def resolved(law: str, results: Path, machine: str, node: str | None = None) -> StragglerLaw:
    """A law with its numbers: the machine's own for `fitted`, that of node type `node` for `node`. Raises MissingInput
    where there is none."""
    parsed = straggler_law(law)
    if parsed.name == NODE_LAW:
        from scaleproof.spec.gpu_node import stated_jitter  # reads YAML, which few ranks need

        stated = stated_jitter(node)
        if stated is None:
            reason = f"jitter: {NODE_LAW}: {f'node type {node!r} states none' if node else 'no node type is named'}"
            raise MissingInput(reason, "state a law, or `jitter` with its source in the node type's file")
        return straggler_law(stated.law)
    if parsed.name != "fitted":
        return parsed
    fitted = read_jitter(results, machine)
    if fitted is None:
        raise MissingInput(
            "jitter: fitted: none was fitted on this machine", "type `scaleproof fit micro jitter`, or state a law"
        )
    return fitted.law


def drawn_from(law: StragglerLaw) -> Jitter | Stragglers | None:
    """The factors of a law with its numbers; None: all are 1."""
    if law.name == NO_LAW:
        return None
    if law.name == "spread":
        step, rank, factor, share = law.numbers
        return Jitter(step, rank, share, factor)
    return Stragglers(law.name, law.numbers)


def variation(law: str, results: Path, machine: str, node: str | None = None) -> Jitter | Stragglers | None:
    """By the text of a law, see `resolved`."""
    return drawn_from(resolved(law, results, machine, node))


def write_jitter(results: Path, fitted: FittedJitter) -> Path:
    """Writes a machine's jitter atomically."""
    return write_form(jitter_file(results, fitted.machine), fitted)
