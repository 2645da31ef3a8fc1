"""Checks of what all ranks of a launch must have in common or must not share: libraries, machines, seeds. Made from the
ranks' reports after the launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scaleproof.core.record_schema import PreflightCheck, Warning

Facts = Mapping[int, Mapping[str, Any]]
"""Rank to its facts (rank/process_facts.py)."""
_SAME_HOST = ("kernel", "cpu", "cpu_flags", "python", "clocksource", "governor")
_EQUAL_SEEDS = ("launch", "hash")
_DISTINCT_SEEDS = ("samples", "generator")


def agreement(facts: Facts) -> list[PreflightCheck]:
    """One check each; none when fewer than two ranks reported."""
    if len(facts) < 2:
        return []
    return [same_libraries(facts), seeds(facts)]


def same_libraries(facts: Facts) -> PreflightCheck:
    """A library or package that several ranks loaded has the same version on each. One that only some ranks loaded is
    listed, and is no failure: roles differ."""
    versions: dict[str, dict[int, str]] = {}
    for rank, of_rank in facts.items():
        for name, version in {**of_rank.get("packages", {}), **of_rank.get("libraries", {})}.items():
            versions.setdefault(name, {})[rank] = version
    different = {name: by_rank for name, by_rank in versions.items() if len(set(by_rank.values())) > 1}
    if different:
        name, by_rank = min(different.items())
        message = f"{name} differs: " + "; ".join(f"rank {rank} {version}" for rank, version in _first_of_each(by_rank))
        return _check(
            "same_libraries",
            False,
            message,
            "install the same environment on every node; `ranks` in the record lists what each rank loaded",
        )
    partly = sorted(name for name, by_rank in versions.items() if len(by_rank) < len(facts))
    more = f"; only some ranks loaded {', '.join(partly)}" if partly else ""
    return _check(
        "same_libraries",
        True,
        f"{len(versions)} libraries and packages in one version each on {len(facts)} ranks{more}",
    )


def unequal_hosts(facts: Facts) -> list[Warning]:
    """Kernel, processor, its features, Python, clock source or governor differ between ranks: no failure, but a step
    takes as long as on the slowest node."""
    warnings = []
    for name in _SAME_HOST:
        values = {rank: str(of_rank.get("host", {}).get(name)) for rank, of_rank in facts.items()}
        if len(set(values.values())) > 1:
            message = f"{name} differs: " + "; ".join(f"rank {rank} {value}" for rank, value in _first_of_each(values))
            warnings.append(
                Warning(
                    code="unequal_hosts",
                    message=message,
                    advice="choose nodes that are alike: a step takes as long as on the slowest node",
                )
            )
    return warnings


def seeds(facts: Facts) -> PreflightCheck:
    """The launch's seed and the hash seed are equal on all ranks; the seeds of the data that a rank draws are
    distinct."""
    logged = {rank: of_rank.get("seeds", {}) for rank, of_rank in facts.items()}
    for name in _EQUAL_SEEDS:
        values = {rank: str(of_rank.get(name)) for rank, of_rank in logged.items()}
        if len(set(values.values())) > 1:
            message = f"seed {name!r} must be equal and is " + "; ".join(
                f"{value} on rank {rank}" for rank, value in _first_of_each(values)
            )
            return _check("seeds", False, message, "start all ranks of a launch with one seed")
    distinct = []
    for name in _DISTINCT_SEEDS:
        values = {rank: str(of_rank[name]) for rank, of_rank in logged.items() if name in of_rank}
        twice = [rank for rank, value in values.items() if list(values.values()).count(value) > 1]
        if twice:
            message = f"ranks {', '.join(map(str, twice))} draw the same {name}, so they learn from the same data"
            return _check("seeds", False, message, "derive what a rank draws from the launch's seed and the rank")
        distinct += [name] if values else []
    more = f"; {', '.join(distinct)} distinct" if distinct else ""
    return _check("seeds", True, f"{' and '.join(_EQUAL_SEEDS)} seed equal on {len(facts)} ranks{more}")


def common(facts: Facts, name: str) -> dict[str, Any]:
    """The entries of one mapping of the facts that are equal on all ranks."""
    mappings = [of_rank.get(name, {}) for of_rank in facts.values()]
    return (
        {
            key: value
            for key, value in mappings[0].items()
            if all(key in other and other[key] == value for other in mappings)
        }
        if mappings
        else {}
    )


def own(facts_of_rank: Mapping[str, Any], name: str, shared: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a rank's mapping that are not shared."""
    return {
        key: value for key, value in facts_of_rank.get(name, {}).items() if key not in shared or shared[key] != value
    }


def _first_of_each(values: Mapping[int, str]) -> list[tuple[int, str]]:
    """Each distinct value with the first rank that has it."""
    first_rank: dict[str, int] = {}
    for rank, value in sorted(values.items()):
        first_rank.setdefault(value, rank)
    return [(rank, value) for value, rank in first_rank.items()]


def _check(code: str, passed: bool | None, message: str, advice: str = "") -> PreflightCheck:
    return PreflightCheck(code=code, passed=passed, message=message, advice="" if passed else advice)
