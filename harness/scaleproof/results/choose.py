"""Chooses launches by conditions KEY:VALUE over the rows of the index, as `scaleproof compare` takes them after @."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from scaleproof.compare.side_selection import TIME_KEYS, Filters, meets, parse, spelled, unmet
from scaleproof.record.rows import TAG

MORE_KEYS = ("status", "failure", "excluded", "program", "plan_index", "campaign", "seed", "tag", "warning")
"""Keys that `compare` does not have. `tag`: a value on any axis of docs/tags.md; `warning`: a code of a warning."""


def conditions(arguments: Sequence[str]) -> Filters:
    """The conditions in the arguments; SpecError with the nearest key for an unknown one."""
    sides = [argument if argument.startswith("@") else f"@{argument}" for argument in arguments]
    return tuple(condition for side in sides for condition in parse(side, MORE_KEYS)[1])


def choose(launches: pa.Table, filters: Filters, folder: str) -> pa.Table:
    """The rows that meet the conditions of every key; several values of one key mean any of them. SpecError with the
    nearest value for a condition that no launch meets. `folder`: name of the results folder, for the error."""
    for key in dict.fromkeys(key for key, _ in filters):
        values = _values(launches, key)
        requested = [value for name, value in filters if name == key]
        matches = [[meets(key, launch_values, value) for launch_values in values] for value in requested]
        for value, matched in zip(requested, matches, strict=True):
            if values and not any(matched):
                raise unmet(key, value, [each for launch_values in values for each in launch_values], folder)
        launches = launches.filter(pa.array([any(matched) for matched in zip(*matches, strict=True)], pa.bool_()))
    return launches


def _values(launches: pa.Table, key: str) -> list[list[str]]:
    """The values of each launch under a key, as text: none, one, or several."""
    if key == "tag":
        columns = [launches[name].to_pylist() for name in launches.column_names if name.startswith(TAG)]
        return [list(tags) for tags in zip(*columns, strict=True)]
    if key == "warning":
        return [codes.split() for codes in launches["warnings"].to_pylist()]
    name = "started_at" if key in TIME_KEYS else key
    if name in launches.column_names:
        return [[] if value is None else [spelled(value)] for value in launches[name].to_pylist()]
    return [
        [spelled(fields[key])] if key in fields else [] for fields in map(json.loads, launches["fields"].to_pylist())
    ]

