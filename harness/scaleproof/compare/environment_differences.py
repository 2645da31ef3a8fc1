"""Differences between the environments of two sides: machine, libraries as loaded, threads, variables, code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scaleproof.compare.comparison_schema import EnvironmentOut
from scaleproof.compare.side_selection import Side, spelled
from scaleproof.core.record_schema import Record

PARTS = ("code", "machine", "packages", "libraries", "threads", "variables", "ranks")
_OF_A_LAUNCH = {
    "load",
    "pace",
    "seeds",
    "asked",
    "sockets",
    "variables_bytes",
    "padding_bytes",
    "peak_memory_mib",
    "involuntary_switches",
    "not_readable",
    "clock",
}
"""Facts that differ between any two launches, or that are recorded twice. Fractions are measured values and left out
too."""
_CHANGING = re.compile(
    r"(^|[._])(seed|pid|ticks|uptime|temperature\w*|throttled|mhz)$|^variables\.(SCALEPROOF|PYTHONHASHSEED)"
)
_REPEATS = ("machine.platform",)
"""Facts that repeat others: they are shown, but no reason to warn."""
_LIBRARY = re.compile(r"(?:[-_]*-[0-9a-f]{8})*\.so[.\w]*")
"""The end of a library's file name: the digest that a wheel adds, and the version."""
_THREADS = re.compile(r"thread|affinity|pool")
_LONG = 80
"""Characters; of longer values only the words that differ are shown."""
Facts = dict[tuple[str, str], set[str]]


def differences(
    a: Sequence[Record], b: Sequence[Record], *, sides: tuple[Side, Side], same_cases: bool
) -> list[EnvironmentOut]:
    """Facts with different sets of values on the two sides, by part and name. `same_cases`: both sides ran equal cases,
    so that they should load the same libraries."""
    first, second = facts(a), facts(b)
    unequal = []
    for part, name in sorted(first.keys() | second.keys(), key=lambda key: (PARTS.index(key[0]), key[1])):
        in_a, in_b = first.get((part, name), set()), second.get((part, name), set())
        if in_a == in_b or (min(len(in_a), len(in_b)) > 1 and all(map(_number, in_a | in_b))):
            continue
        only_one_side = not in_a or not in_b
        matters = in_a.isdisjoint(in_b) and f"{part}.{name}" not in _REPEATS and (same_cases or not only_one_side)
        unequal.append(
            EnvironmentOut(
                part=part,
                name=name,
                a=_shown_values(in_a, in_b),
                b=_shown_values(in_b, in_a),
                matters=matters,
                asked=part in requested_parts(*sides),
            )
        )
    return unequal


def requested_parts(a: Side, b: Side) -> set[str]:
    """Parts by which the two sides are defined: the code where they name two commits, the machine where they name two
    machines."""
    parts = {"commit": "code", "code": "code", "machine": "machine"}
    return {
        part
        for key, part in parts.items()
        if a.requested(key) and b.requested(key) and set(a.requested(key)) != set(b.requested(key))
    }


def facts(records: Iterable[Record]) -> Facts:
    """All values of each fact over launches and ranks, by part and name."""
    values: Facts = {}
    for record in records:
        for key, value in _facts(record):
            values.setdefault(key, set()).add(value)
    return values


def _facts(record: Record) -> Iterable[tuple[tuple[str, str], str]]:
    code = {
        "version": record.code.version,
        "commit": record.code.commit,
        "local changes": record.code.dirty,
        "digest": record.code.digest,
    }
    yield from ((("code", name), _word(value)) for name, value in code.items())
    yield ("machine", "id"), record.machine
    for name, value in _flat(record.environment):
        yield _placed("machine", name), value
    for status in record.ranks:
        for name, value in _flat(status.facts):
            yield _placed("ranks", name), value
    for transport in record.transport.get("ranks") or []:
        for name in ("library", "path", "progress"):
            if transport and name in transport:
                yield ("libraries" if name == "library" else "ranks", f"transport {name}"), _word(transport[name])


def _placed(part: str, name: str) -> tuple[str, str]:
    """The part and the name of a fact. Variables, packages and libraries are parts wherever a record keeps them; facts
    of a rank about its host belong to the machine."""
    if name.startswith("host."):
        return _placed("machine", name.removeprefix("host."))
    for own in ("variables", "packages", "libraries"):
        if name.startswith(f"{own}."):
            return own, name.removeprefix(f"{own}.")
    return ("threads" if _THREADS.search(name) else part), name


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Nested values as dotted names. The version in a library's file name is part of the value, so that two versions of
    one library are one fact."""
    for name, value in values.items():
        dotted = f"{prefix}{name}"
        if name in _OF_A_LAUNCH or _CHANGING.search(dotted):
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, f"{dotted}.")
        elif prefix.endswith(("libraries.", "pools.")):
            yield prefix + _LIBRARY.sub("", name), _word(value)
        elif not isinstance(value, float):
            yield dotted, _word(value)


def _shown_values(mine: set[str], others: set[str]) -> tuple[str, ...]:
    """The values in order; of a long value (processor flags) only the words that the other side does not have."""
    other_words = {word for value in others for word in value.split()}
    return tuple(sorted({_only(value, other_words) if len(value) > _LONG and others else value for value in mine}))


def _only(value: str, other_words: set[str]) -> str:
    return " ".join(dict.fromkeys(word for word in value.split() if word not in other_words)) or "nothing else"


def _number(word: str) -> bool:
    """Whether a value is a whole number. A fact with several numbers on both sides was measured, not set."""
    return word.removeprefix("-").isdigit()


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else spelled(value)
