"""Which launches a person means: conditions KEY:VALUE over the rows of the index, as `scaleproof compare` takes them
after @."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from scaleproof.compare.side_selection import Filters, near, parse, same, spelled
from scaleproof.record.rows import TAG
from scaleproof.spec.errors import SpecError

BEGINNINGS = ("case", "code", "commit", "launch", "machine")
TIMES = ("since", "until")
ALSO = ("status", "failure", "excluded", "program", "plan_index", "seed", "tag", "warning")
"""Keys beside those of `compare`; `tag`: a value on any axis of docs/tags.md, `warning`: one of the record's codes."""


def conditions(words: Sequence[str]) -> Filters:
    """From what was typed; SpecError with the nearest key."""
    return tuple(
        condition for word in words for condition in parse(word if word.startswith("@") else f"@{word}", ALSO)[1]
    )


def choose(launches: pa.Table, filters: Filters, where: str) -> pa.Table:
    """The rows that meet every condition; several values under one key mean any of them. SpecError names the nearest
    value where a condition fits nothing."""
    for key in dict.fromkeys(key for key, _ in filters):
        values = _values(launches, key)
        wanted = [value for name, value in filters if name == key]
        meets = [[_meets(key, found, value) for found in values] for value in wanted]
        for value, met in zip(wanted, meets, strict=True):
            if values and not any(met):
                raise _nothing(key, value, values, where)
        launches = launches.filter(pa.array([any(met) for met in zip(*meets, strict=True)], pa.bool_()))
    return launches


def _values(launches: pa.Table, key: str) -> list[list[str]]:
    """Of each launch, what it has under a key, spelled: none, one, or several."""
    if key == "tag":
        columns = [launches[name].to_pylist() for name in launches.column_names if name.startswith(TAG)]
        return [list(tags) for tags in zip(*columns, strict=True)]
    if key == "warning":
        return [codes.split() for codes in launches["warnings"].to_pylist()]
    name = "started_at" if key in TIMES else key
    if name in launches.column_names:
        return [[] if value is None else [spelled(value)] for value in launches[name].to_pylist()]
    return [
        [spelled(fields[key])] if key in fields else [] for fields in map(json.loads, launches["fields"].to_pylist())
    ]


def _meets(key: str, found: Sequence[str], wanted: str) -> bool:
    if key in TIMES:
        return found[0] >= wanted if key == "since" else found[0] < wanted
    return any(value.startswith(wanted) if key in BEGINNINGS else same(value, wanted) for value in found)


def _nothing(key: str, value: str, values: Sequence[Sequence[str]], where: str) -> SpecError:
    known = sorted({found for each in values for found in each})
    if key in TIMES:
        return SpecError(
            f"no launch in {where} started {key} {value}; the first one did at {known[0]}, the last one at {known[-1]}"
        )
    return SpecError(f"no launch in {where} has {key} {value!r}; {near(value, known)}")
