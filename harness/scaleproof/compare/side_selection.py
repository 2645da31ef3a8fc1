"""What a person writes to name one side of a comparison, `SOURCE[@KEY:VALUE[,KEY:VALUE...]]`, and the launches it
stands for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scaleproof.core.record_schema import Record
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase
from scaleproof.spec.case_layers import every_key
from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest

_ID = re.compile(r"[0-9a-f]+")
_SHORT = 12
"""So many names at most are listed in a message."""
_BEGINNINGS: dict[str, Callable[[Record], str]] = {
    "case": lambda record: record.case_id,
    "code": lambda record: record.code.digest,
    "commit": lambda record: record.code.commit or "none",
    "launch": lambda record: record.launch,
    "machine": lambda record: record.machine,
}
"""Keys whose value may be the beginning of a name."""
_WHOLE: dict[str, Callable[[Record], str]] = {
    "evidence": lambda record: record.evidence,
    "size": lambda record: record.size,
}
_TIMES = ("since", "until")
_MOMENT = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?)?)?)?")
_LISTS = ("sizes", "options")
FIELDS = tuple(sorted(every_key() - set(_LISTS)))
"""Fields of a case that a side can be chosen by."""
KEYS = (*_BEGINNINGS, *_WHOLE, *_TIMES, *FIELDS)
CALIBRATION, _NAMED = "calibration", ("suite", "case", "launch")
"""Launches of identical arms that a noise floor comes from: compared only when named."""
Filters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One side as written: the folder of results, what `source` names in it (`all`, a `case`, a `launch`), and the
    conditions on its launches."""

    text: str
    store: Store
    source: str
    records: tuple[Record, ...]
    filters: Filters

    def wanted(self, key: str) -> tuple[str, ...]:
        """Values that the side asks for under a key, in the order of writing."""
        return tuple(value for name, value in self.filters if name == key)


def select(text: str, results: Path, opened: Callable[[Path], Store] = Store) -> Side:
    """Every record that a side names, also failed ones; `results` is the folder where none is written. SpecError when
    the text or a name in it is wrong."""
    source, filters = parse(text)
    folder = _folder(source, results)
    store = opened(folder if folder is not None else results)
    if folder is None:
        kind, records = _by_id(source, store)
    else:
        named = any(key in _NAMED for key, _ in filters)
        kind, records = "all", [record for record in store.records() if named or record.case.suite != CALIBRATION]
    if not records:
        raise SpecError(f"{text!r}: {store.results} holds no record of this version")
    return Side(text, store, kind, tuple(_filtered(records, filters, store.results)), filters)


def parse(text: str, also: Sequence[str] = ()) -> tuple[str, Filters]:
    """Source and conditions of a side; SpecError with the nearest key. `also`: further keys that the caller knows."""
    source, rest = _divided(text)
    if rest is None:
        return source, ()
    filters = []
    for part in rest.split(","):
        key, colon, value = part.partition(":")
        if not colon or not value:
            raise SpecError(f"{text!r}: {part!r} is no condition; write KEY:VALUE, as in '@arm:tcp,size:smoke'")
        if key not in (*KEYS, *also):
            raise SpecError(f"{text!r}: unknown key {key!r}; {_advice(key, (*KEYS, *also))}")
        if key in _TIMES and not _MOMENT.fullmatch(value):
            raise SpecError(f"{text!r}: {value!r} is no moment; write UTC as in '2026-05-01' or '2026-05-01T12:30'")
        filters.append((key, value))
    return source, tuple(filters)


def _advice(key: str, known: Sequence[str]) -> str:
    """What to write in place of an unknown key: an option that was written without its field, or the nearest key."""
    options = [name for name in known if name.rpartition(".")[2] == key]
    return f"did you mean {options[0]!r}?" if len(options) == 1 else near(key, known)


def _divided(text: str) -> tuple[str, str | None]:
    """Source and the text of the conditions, None where there is none; a folder's name may hold an @."""
    if text.startswith("@"):
        return "", text[1:]
    if Path(text).is_dir():
        return text, None
    source, at, rest = text.partition("@")
    return source, rest if at else None


def near(name: str, candidates: Iterable[str]) -> str:
    """Advice for a name that is not there: the nearest one, or all where they are few."""
    found = sorted(set(candidates))
    if not found:
        return "there is none"
    if len(found) <= _SHORT or difflib.get_close_matches(name, found, n=1, cutoff=0.5):
        return nearest(name, found)
    return f"known: {', '.join(found[:_SHORT])} and {len(found) - _SHORT} more"


def spelled(value: object) -> str:
    """A field's value as it is written in a condition and shown in a table."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return " ".join(spelled(item) for item in value) or "none"
    return "none" if value is None else str(value)


def _folder(source: str, results: Path) -> Path | None:
    """The results folder that a source names; None when it is the id of something."""
    if not source:
        return results
    path = Path(source)
    if (path / "runs").is_dir():
        return path
    if path.is_dir():
        raise SpecError(f"{source}: no results folder, since it has no folder 'runs'")
    if not _ID.fullmatch(source):
        raise SpecError(f"no folder {source!r}; {near(source, _folders_beside(path))}")
    return None


def _folders_beside(path: Path) -> list[str]:
    if not path.parent.is_dir():
        return []
    return [str(path.with_name(other.name)) for other in path.parent.iterdir() if other.is_dir()]


def _by_id(source: str, store: Store) -> tuple[str, list[Record]]:
    cases = sorted(path.name for path in store.runs.glob(f"{source}*"))
    launches = sorted(path.name for path in store.runs.glob(f"*/{source}*"))
    if source in cases or (len(cases) == 1 and not launches):
        return "case", list(store.records(source if source in cases else cases[0]))
    if source in launches or (len(launches) == 1 and not cases):
        return "launch", [store.load(source if source in launches else launches[0])[0]]
    if cases or launches:
        found = f"the beginning of {len(cases)} cases and {len(launches)} launches in {store.runs}"
        raise SpecError(f"{source!r} is {found}; write more of it")
    known = [path.name for pattern in ("*", "*/*") for path in store.runs.glob(pattern)]
    close = difflib.get_close_matches(source, known, n=1, cutoff=0.5)
    advice = f"did you mean {close[0]!r}?" if close else f"it has {len(known)} ids"
    raise SpecError(f"no folder, case or launch {source!r} (looked in {store.runs}); {advice}")


def _filtered(records: Sequence[Record], filters: Filters, results: Path) -> list[Record]:
    """Those that meet every condition; several values under one key mean any of them."""
    kept = list(records)
    for key in dict.fromkeys(key for key, _ in filters):
        wanted = [value for name, value in filters if name == key]
        for value in wanted:
            _check(key, value, records, results)
        kept = [record for record in kept if any(_meets(record, key, value) for value in wanted)]
    if not kept:
        raise SpecError(f"no launch in {results} meets all of " + ", ".join(f"{key}:{value}" for key, value in filters))
    return kept


def _check(key: str, value: str, records: Sequence[Record], results: Path) -> None:
    """A condition that no launch meets has its value misspelt; a beginning must be that of one thing."""
    if not any(_meets(record, key, value) for record in records):
        raise _unmet(key, value, records, results)
    if key not in _BEGINNINGS:
        return
    meant = sorted({name for record in records for name in _values(record, key) if name.startswith(value)})
    if len(meant) > 1:
        listed = ", ".join(meant[:_SHORT])
        raise SpecError(f"{key} {value!r} is the beginning of {len(meant)} in {results}: {listed}")


def _unmet(key: str, value: str, records: Sequence[Record], results: Path) -> SpecError:
    """What is wrong with a condition that no launch meets."""
    if key in _TIMES:
        times = [record.started_at for record in records]
        range_of = f"the first one did at {min(times)}, the last one at {max(times)}"
        return SpecError(f"no launch in {results} started {key} {value}; {range_of}")
    known = [name for record in records for name in _values(record, key)]
    return SpecError(f"no launch in {results} has {key} {value!r}; {near(value, known)}")


_ABSENT = object()


def _values(record: Record, key: str) -> list[str]:
    if key in _BEGINNINGS or key in _WHOLE:
        return [(_BEGINNINGS | _WHOLE)[key](record)]
    return [spelled(value)] if (value := record.case.value(key, _ABSENT)) is not _ABSENT else []


def _meets(record: Record, key: str, value: str) -> bool:
    if key == "since":
        return record.started_at >= value
    if key == "until":
        return record.started_at < value
    if key in _BEGINNINGS:
        return any(name.startswith(value) for name in _values(record, key))
    return any(same(name, value) for name in _values(record, key))


def same(found: str, wanted: str) -> bool:
    """Equal as words, or as numbers: 0.50 is 0.5."""
    try:
        return found == wanted or float(found) == float(wanted)
    except ValueError:
        return False


def fields(case: AnyCase) -> dict[str, str]:
    """Every field of a case and every option that is not at its default, spelled."""
    return {name: spelled(value) for name, value in case.flat().items()}
