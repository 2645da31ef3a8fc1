"""One side of a comparison: parses `SOURCE[@KEY:VALUE[,KEY:VALUE...]]` and selects the launches that meet all its
conditions."""

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
"""At most so many names are listed in a message."""
_PREFIX_VALUES: dict[str, Callable[[Record], str]] = {
    "case": lambda record: record.case_id,
    "code": lambda record: record.code.digest,
    "commit": lambda record: record.code.commit or "none",
    "launch": lambda record: record.launch,
    "machine": lambda record: record.machine,
}
"""Keys for which the beginning of a value is enough, and the value of a record."""
_EXACT_VALUES: dict[str, Callable[[Record], str]] = {
    "evidence": lambda record: record.evidence,
    "size": lambda record: record.size,
}
TIME_KEYS = ("since", "until")
_MOMENT = re.compile(r"\d{4}(-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?)?)?)?")
_LISTS = ("sizes", "options")
FIELDS = tuple(sorted(every_key() - set(_LISTS)))
"""Fields of a case that may be keys of conditions."""
KEYS = (*_PREFIX_VALUES, *_EXACT_VALUES, *TIME_KEYS, *FIELDS)
CALIBRATION = "calibration"
"""The suite of the identical arms from which noise floors come."""
_NAMING_KEYS = ("suite", "case", "launch")
"""Launches of CALIBRATION are compared only where a condition has one of these keys."""
Filters = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One side: its text, the folder of results, whether the source names `all` of it, a `case` or a `launch`, the
    selected records, and the conditions."""

    text: str
    store: Store
    source: str
    records: tuple[Record, ...]
    filters: Filters

    def requested(self, key: str) -> tuple[str, ...]:
        """Values of the side's conditions with this key, in their order."""
        return tuple(value for name, value in self.filters if name == key)


def select(text: str, results: Path, opened: Callable[[Path], Store] = Store) -> Side:
    """The side with every record that it selects, also failed ones. `results`: the folder where the text names none.
    SpecError when the text or a name in it is wrong."""
    source, filters = parse(text)
    folder = _folder(source, results)
    store = opened(folder if folder is not None else results)
    if folder is None:
        kind, records = _by_id(source, store)
    else:
        named = any(key in _NAMING_KEYS for key, _ in filters)
        kind, records = "all", [record for record in store.records() if named or record.case.suite != CALIBRATION]
    if not records:
        raise SpecError(f"{text!r}: {store.results} holds no record of this version")
    return Side(text, store, kind, tuple(_filtered(records, filters, store.results)), filters)


def parse(text: str, also: Sequence[str] = ()) -> tuple[str, Filters]:
    """Source and conditions of a side; SpecError with the nearest key. `also`: further keys that the caller handles."""
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
        if key in TIME_KEYS and not _MOMENT.fullmatch(value):
            raise SpecError(f"{text!r}: {value!r} is no moment; write UTC as in '2026-05-01' or '2026-05-01T12:30'")
        filters.append((key, value))
    return source, tuple(filters)


def _advice(key: str, keys: Sequence[str]) -> str:
    """Advice for an unknown key: the option of a plugin where the key is its name without the plugin's field, else the
    nearest key."""
    options = [name for name in keys if name.rpartition(".")[2] == key]
    return f"did you mean {options[0]!r}?" if len(options) == 1 else near(key, keys)


def _divided(text: str) -> tuple[str, str | None]:
    """Source, and the text of the conditions (None: there are none). A folder's name may contain an @."""
    if text.startswith("@"):
        return "", text[1:]
    if Path(text).is_dir():
        return text, None
    source, at, rest = text.partition("@")
    return source, rest if at else None


def near(name: str, candidates: Iterable[str]) -> str:
    """Advice for an unknown name: the nearest candidate, or the list of candidates."""
    names = sorted(set(candidates))
    if not names:
        return "there is none"
    if len(names) <= _SHORT or difflib.get_close_matches(name, names, n=1, cutoff=0.5):
        return nearest(name, names)
    return f"known: {', '.join(names[:_SHORT])} and {len(names) - _SHORT} more"


def spelled(value: object) -> str:
    """A field's value as it is written in a condition and shown in a table."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return " ".join(spelled(item) for item in value) or "none"
    return "none" if value is None else str(value)


def _folder(source: str, results: Path) -> Path | None:
    """The results folder that a source names; None when the source is the id of a case or launch."""
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
        ambiguous = f"the beginning of {len(cases)} cases and {len(launches)} launches in {store.runs}"
        raise SpecError(f"{source!r} is {ambiguous}; write more of it")
    ids = [path.name for pattern in ("*", "*/*") for path in store.runs.glob(pattern)]
    close = difflib.get_close_matches(source, ids, n=1, cutoff=0.5)
    advice = f"did you mean {close[0]!r}?" if close else f"it has {len(ids)} ids"
    raise SpecError(f"no folder, case or launch {source!r} (looked in {store.runs}); {advice}")


def _filtered(records: Sequence[Record], filters: Filters, results: Path) -> list[Record]:
    """The records that meet the conditions of every key; several values of one key mean any of them."""
    selected = list(records)
    for key in dict.fromkeys(key for key, _ in filters):
        requested = [value for name, value in filters if name == key]
        for value in requested:
            _check(key, value, records, results)
        selected = [
            record for record in selected if any(meets(key, _values(record, key), value) for value in requested)
        ]
    if not selected:
        raise SpecError(f"no launch in {results} meets all of " + ", ".join(f"{key}:{value}" for key, value in filters))
    return selected


def _check(key: str, value: str, records: Sequence[Record], results: Path) -> None:
    """SpecError for a condition that no launch meets, and for the beginning of several values."""
    recorded = [name for record in records for name in _values(record, key)]
    if not any(meets(key, _values(record, key), value) for record in records):
        raise unmet(key, value, recorded, results)
    if key not in _PREFIX_VALUES:
        return
    matches = sorted({name for name in recorded if name.startswith(value)})
    if len(matches) > 1:
        listed = ", ".join(matches[:_SHORT])
        raise SpecError(f"{key} {value!r} is the beginning of {len(matches)} in {results}: {listed}")


def unmet(key: str, value: str, recorded: Sequence[str], folder: Path | str) -> SpecError:
    """The error for a condition that no launch meets. `recorded`: the values of all launches under this key."""
    if key in TIME_KEYS:
        first_and_last = f"the first one did at {min(recorded)}, the last one at {max(recorded)}"
        return SpecError(f"no launch in {folder} started {key} {value}; {first_and_last}")
    return SpecError(f"no launch in {folder} has {key} {value!r}; {near(value, recorded)}")


_ABSENT = object()


def _values(record: Record, key: str) -> list[str]:
    """The values of a record under a key, as text: none where its case has no such field."""
    if key in TIME_KEYS:
        return [record.started_at]
    if key in _PREFIX_VALUES or key in _EXACT_VALUES:
        return [(_PREFIX_VALUES | _EXACT_VALUES)[key](record)]
    return [spelled(value)] if (value := record.case.value(key, _ABSENT)) is not _ABSENT else []


def meets(key: str, values: Sequence[str], requested: str) -> bool:
    """Whether a launch with these values under a key meets the condition `key:requested`."""
    if key in TIME_KEYS:
        return values[0] >= requested if key == "since" else values[0] < requested
    if key in _PREFIX_VALUES:
        return any(value.startswith(requested) for value in values)
    return any(_same(value, requested) for value in values)


def _same(value: str, requested: str) -> bool:
    """Equal as text, or as numbers: 0.50 is 0.5."""
    try:
        return value == requested or float(value) == float(requested)
    except ValueError:
        return False


def fields(case: AnyCase) -> dict[str, str]:
    """Every field of a case and every option that is not at its default, as text."""
    return {name: spelled(value) for name, value in case.flat().items()}
