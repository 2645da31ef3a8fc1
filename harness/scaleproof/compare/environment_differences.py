"""What differs around the launches of two sides: machine, libraries as loaded, threads, variables, code."""

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
"""Facts that every launch has anew, or that are recorded twice; fractions, being measured, are left out too."""
_CHANGING = re.compile(
    r"(^|[._])(seed|pid|ticks|uptime|temperature\w*|throttled|mhz)$|^variables\.(SCALEPROOF|PYTHONHASHSEED)"
)
_REPEATS = ("machine.platform",)
"""Said by other facts too: shown, no reason to warn."""
_LIBRARY = re.compile(r"(?:[-_]*-[0-9a-f]{8})*\.so[.\w]*")
"""The end of a library's file name: the digest that a wheel adds, and the version."""
_THREADS = re.compile(r"thread|affinity|pool")
_LONG = 80
"""Letters; of longer values only the words that differ are shown."""
Facts = dict[tuple[str, str], set[str]]


def differences(
    a: Sequence[Record], b: Sequence[Record], *, sides: tuple[Side, Side], same_cases: bool
) -> list[EnvironmentOut]:
    """Facts that are not the same set of values on both sides, by part and name. `same_cases`: both sides ran equal
    cases, so they should load the same."""
    first, second = facts(a), facts(b)
    found = []
    for part, name in sorted(first.keys() | second.keys(), key=lambda key: (PARTS.index(key[0]), key[1])):
        one, other = first.get((part, name), set()), second.get((part, name), set())
        if one == other or (min(len(one), len(other)) > 1 and all(map(_number, one | other))):
            continue
        only_one_side = not one or not other
        matters = one.isdisjoint(other) and f"{part}.{name}" not in _REPEATS and (same_cases or not only_one_side)
        asked = part in asked_parts(*sides)
        found.append(
            EnvironmentOut(
                part=part,
                name=name,
                a=_shown_values(one, other),
                b=_shown_values(other, one),
                matters=matters,
                asked=asked,
            )
        )
    return found


def asked_parts(a: Side, b: Side) -> set[str]:
    """Parts by which the two sides are defined: of two commits the code differs, of two machines the machine."""
    by = {"commit": "code", "code": "code", "machine": "machine"}
    return {
        part for key, part in by.items() if a.wanted(key) and b.wanted(key) and set(a.wanted(key)) != set(b.wanted(key))
    }


def facts(records: Iterable[Record]) -> Facts:
    """All values of each fact over launches and ranks, by part and name."""
    found: Facts = {}
    for record in records:
        for key, value in _facts(record):
            found.setdefault(key, set()).add(value)
    return found


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
    """Variables, packages and libraries are parts of their own, wherever a record keeps them; what a rank found of its
    host is the machine's."""
    if name.startswith("host."):
        return _placed("machine", name.removeprefix("host."))
    for own in ("variables", "packages", "libraries"):
        if name.startswith(f"{own}."):
            return own, name.removeprefix(f"{own}.")
    return ("threads" if _THREADS.search(name) else part), name


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Nested values as dotted names. A library's version belongs to its value: two versions of one library are one
    fact."""
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
    """The values in order; of a long one, as the flags of a processor, only the words that the other side lacks."""
    there = {word for value in others for word in value.split()}
    return tuple(sorted({_only(value, there) if len(value) > _LONG and others else value for value in mine}))


def _only(value: str, there: set[str]) -> str:
    return " ".join(dict.fromkeys(word for word in value.split() if word not in there)) or "nothing else"


def _number(word: str) -> bool:
    """A fact that is several numbers on either side was measured, not set."""
    return word.removeprefix("-").isdigit()


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else spelled(value)
