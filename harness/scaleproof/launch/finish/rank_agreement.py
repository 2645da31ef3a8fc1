"""What all ranks of a launch must have in common, or must not: libraries, machines, seeds. Looked at when they have
reported."""

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
    """A library or package on several ranks is the same build on each. One that only some ranks loaded is told, and no
    failure: roles differ."""
    versions: dict[str, dict[int, str]] = {}
    for rank, found in facts.items():
        for name, version in {**found.get("packages", {}), **found.get("libraries", {})}.items():
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
    takes as long as the slowest node."""
    found = []
    for name in _SAME_HOST:
        values = {rank: str(found.get("host", {}).get(name)) for rank, found in facts.items()}
        if len(set(values.values())) > 1:
            message = f"{name} differs: " + "; ".join(f"rank {rank} {value}" for rank, value in _first_of_each(values))
            found.append(
                Warning(
                    code="unequal_hosts",
                    message=message,
                    advice="choose nodes that are alike: a step takes as long as the slowest node",
                )
            )
    return found


def seeds(facts: Facts) -> PreflightCheck:
    """The launch's seed and the hash seed are equal on all ranks; what says which data a rank draws is distinct."""
    logged = {rank: found.get("seeds", {}) for rank, found in facts.items()}
    for name in _EQUAL_SEEDS:
        values = {rank: str(found.get(name)) for rank, found in logged.items()}
        if len(set(values.values())) > 1:
            message = f"seed {name!r} must be equal and is " + "; ".join(
                f"{value} on rank {rank}" for rank, value in _first_of_each(values)
            )
            return _check("seeds", False, message, "start all ranks of a launch with one seed")
    distinct = []
    for name in _DISTINCT_SEEDS:
        values = {rank: str(found[name]) for rank, found in logged.items() if name in found}
        twice = [rank for rank, value in values.items() if list(values.values()).count(value) > 1]
        if twice:
            message = f"ranks {', '.join(map(str, twice))} draw the same {name}, so they learn from the same data"
            return _check("seeds", False, message, "derive what a rank draws from the launch's seed and the rank")
        distinct += [name] if values else []
    more = f"; {', '.join(distinct)} distinct" if distinct else ""
    return _check("seeds", True, f"{' and '.join(_EQUAL_SEEDS)} seed equal on {len(facts)} ranks{more}")


def common(facts: Facts, name: str) -> dict[str, Any]:
    """The entries of a mapping among the facts that all ranks have alike."""
    mappings = [found.get(name, {}) for found in facts.values()]
    return (
        {
            key: value
            for key, value in mappings[0].items()
            if all(key in other and other[key] == value for other in mappings)
        }
        if mappings
        else {}
    )


def own(found: Mapping[str, Any], name: str, shared: Mapping[str, Any]) -> dict[str, Any]:
    """What of a rank's mapping is not shared."""
    return {key: value for key, value in found.get(name, {}).items() if key not in shared or shared[key] != value}


def _first_of_each(values: Mapping[int, str]) -> list[tuple[int, str]]:
    seen: dict[str, int] = {}
    for rank, value in sorted(values.items()):
        seen.setdefault(value, rank)
    return [(rank, value) for value, rank in seen.items()]


def _check(code: str, passed: bool | None, message: str, advice: str = "") -> PreflightCheck:
    return PreflightCheck(code=code, passed=passed, message=message, advice="" if passed else advice)
