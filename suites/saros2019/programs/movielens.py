"""MovieLens 100K, read in place from the installed package recbole, which ships it with timestamps. GroupLens does not
allow it to be passed on, so that nothing of it is part of this project. recbole itself is not imported."""

from __future__ import annotations

import csv
import difflib
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from suite_programs.interactions import Interactions, in_order

from scaleproof.spec.errors import SpecError, shown

COLUMNS = ("user_id:token", "item_id:token", "rating:float", "timestamp:float")
PLACE = Path("dataset_example") / "ml-100k" / "ml-100k.inter"
CLICK = 4.0
"""Rating at or above which an item counts as clicked (SAROS@9ce3670)."""
ADVICE = "type: python3 -m tools.setup extras saros2019"


def installed_file() -> Path | None:
    """The file of the installed package; None where there is none."""
    spec = find_spec("recbole")
    places = list(spec.submodule_search_locations or ()) if spec else []
    return next((Path(place) / PLACE for place in places if (Path(place) / PLACE).is_file()), None)


def obstacle() -> tuple[str, str] | None:
    """Why these data cannot be read here, and what to do."""
    if installed_file():
        return None
    missing = "package recbole is not installed" if find_spec("recbole") is None else f"recbole has no {PLACE}"
    return f"{missing}, which ships MovieLens 100K", ADVICE


def read_movielens(file: Path | None = None) -> Interactions:
    """All ratings. SpecError says in one line what is wrong with the file, and where."""
    file = file or installed_file()
    if file is None:
        raise SpecError("; ".join(obstacle() or ()))
    with file.open(newline="", encoding="utf-8") as lines:
        place = _columns(file, next(csv.reader(lines, delimiter="\t"), []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a file without rows
        try:
            table = np.loadtxt(file, delimiter="\t", skiprows=1, usecols=place, ndmin=2, encoding="utf-8")
        except ValueError:
            table = np.full((1, len(COLUMNS)), np.nan)
    if not len(table):
        raise SpecError(f"{shown(file)}:1: no ratings below the header")
    if not (np.isfinite(table) & (table >= 0)).all():
        _point_at_wrong(file, place)
    _, user = np.unique(table[:, 0], return_inverse=True)
    names, item = np.unique(table[:, 1], return_inverse=True)
    _refuse_twice(file, user * len(names) + item)
    return in_order(user, item, table[:, 2] >= CLICK, table[:, 3], len(names))


def _columns(file: Path, header: list[str]) -> list[int]:
    for name in COLUMNS:
        if name not in header:
            near = difflib.get_close_matches(name, header, 1)
            known = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(header) or 'none'}"
            raise SpecError(f"{shown(file)}:1: no column {name!r}; {known}")
    return [header.index(name) for name in COLUMNS]


def _point_at_wrong(file: Path, place: list[int]) -> None:
    """SpecError for the first row that is wrong. Row by row, and so only for a file that has one."""
    with file.open(newline="", encoding="utf-8") as lines:
        rows = csv.reader(lines, delimiter="\t")
        next(rows)
        for line, row in enumerate(rows, 2):
            if len(row) <= max(place):
                raise SpecError(f"{shown(file)}:{line}: {len(row)} columns; {max(place) + 1} are needed")
            for column, name in zip(place, COLUMNS, strict=True):
                if not _is_amount(row[column]):
                    raise SpecError(f"{shown(file)}:{line}: {name}: {row[column]!r} is not a number of 0 or more")


def _is_amount(text: str) -> bool:
    try:
        return 0 <= float(text) < float("inf")
    except ValueError:
        return False


def _refuse_twice(file: Path, pair: np.ndarray) -> None:
    _, first, counts = np.unique(pair, return_index=True, return_counts=True)
    if (counts > 1).any():
        again = np.flatnonzero(pair == pair[first[counts > 1][0]])[1]
        raise SpecError(f"{shown(file)}:{again + 2}: this user has rated this item before")
