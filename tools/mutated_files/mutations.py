"""Makes one mutated file from its number and a seed: the same number and seed always give the same file."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[2]
SHARES = {"suite.yaml": 30, "claims.yaml": 30, "published.yaml": 15, "figures.yaml": 10, "cluster": 15}
"""How many of 100 files are of each kind: those of a suite that commands read, and descriptions of clusters."""
CLUSTER = "cluster"
OTHER_VALUES = (
    "null", "true", "false", "0", "-1", "1", "0.5", "1e999", "-1e999", ".nan", "99999999999999999999", "1e-320", "0x10",
    "''", "x", "1 KiB", "2001-01-01", "[]", "{}", "[[1]]", "[null]", "[tcp]", "[.nan]", "{a: 1}", "{name: tcp}",
    "{name: [tcp]}", "{name: {}}", "{name: null}", "[{a: [1]}]", "!!binary x", "!!set {a}", "&a [*a]", "*nothing",
    "'*'", "../..", "/etc/passwd", "'a b'", "'\\u2028'", '"\\0"', "[" * 2000,
)  # fmt: skip
BROKEN = (
    b"\xff", b"\xfe\xff", b"\xc3", b"\x00", b"\x07", b"\x85", b"\xe2\x80\xa8", b"\t", b"\r", b"\n", b": ", b"- ",
    b"&", b"*", b"!", b"%", b"@", b"`", b"'", b'"', b"{", b"]", b"#", b"---\n", b"...\n", b"<<: ", b"? ", b"| ",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it is."""

    path: Path
    text: str

    @property
    def kind(self) -> str:
        """A file of a suite by its name, or CLUSTER."""
        return CLUSTER if self.path.parent.name == "clusters" else self.path.name


@dataclass(frozen=True, slots=True)
class MutatedFile:
    """A file after some mutations."""

    number: int
    source: Source
    content: bytes
    mutations: tuple[str, ...]
    """What was done, in words."""


class Span(NamedTuple):
    """Where something stands in a text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Places:
    """What mutations can touch in a file."""

    keys: tuple[Span, ...]
    values: tuple[Span, ...]
    """Scalars and collections in brackets: either fits wherever the other stands."""
    entries: tuple[Span, ...]
    """Keys with their values, and items of lists."""


class Edit(NamedTuple):
    """One place of a text replaced."""

    span: Span
    new: str


@cache
def sources(kind: str) -> tuple[Source, ...]:
    """Every file of a kind."""
    paths = (ROOT / "clusters").glob("*.yaml") if kind == CLUSTER else (ROOT / "suites").glob(f"*/{kind}")
    return tuple(Source(path, path.read_text()) for path in sorted(paths))


@cache
def places(source: Source) -> Places:
    """Where the keys, values and entries of a file stand."""
    keys, values, entries = list[Span](), list[Span](), list[Span]()
    root = yaml.compose(source.text, Loader=yaml.CSafeLoader)
    assert root is not None, f"{source.path} is empty"
    for node in _nodes(root, set()):
        if isinstance(node, yaml.ScalarNode) or (isinstance(node, yaml.CollectionNode) and node.flow_style):
            values.append(_span(node))
        if isinstance(node, yaml.MappingNode):
            keys += [_span(key) for key, _ in node.value]
            entries += [Span(_span(key).start, _span(value).end) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            entries += [_span(item) for item in node.value]
    return Places(tuple(keys), tuple(values), tuple(span for span in entries if span.start < span.end))


def _nodes(node: yaml.Node, seen: set[int]) -> Iterator[yaml.Node]:
    """A node and all values in it, each once: aliases are the node that they stand for."""
    if id(node) in seen:
        return
    seen.add(id(node))
    yield node
    if isinstance(node, yaml.MappingNode):
        for _, value in node.value:
            yield from _nodes(value, seen)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _nodes(item, seen)


def _span(node: yaml.Node) -> Span:
    return Span(node.start_mark.index, node.end_mark.index)


def mutated(number: int, seed: int) -> MutatedFile:
    """The file of a number."""
    chooser = random.Random(f"{seed}/{number}")
    source = chooser.choice(sources(*chooser.choices(list(SHARES), list(SHARES.values()))))
    if chooser.random() < 0.15:
        content, what = _broken(chooser, source.text.encode())
        return MutatedFile(number, source, content, (what,))
    count = 1 + (chooser.random() < 0.3)
    kinds = [chooser.choice(list(_KINDS)) for _ in range(count)]
    edits = [edit for kind in kinds for edit in _KINDS[kind](chooser, source)]
    return MutatedFile(number, source, _edited(source.text, edits).encode(), tuple(kinds))


def _edited(text: str, edits: list[Edit]) -> str:
    """The text with all edits that do not overlap an earlier one."""
    kept: list[Edit] = []
    for edit in edits:
        if all(edit.span.end <= other.span.start or other.span.end <= edit.span.start for other in kept):
            kept.append(edit)
    for edit in sorted(kept, key=lambda edit: edit.span.start, reverse=True):
        text = text[: edit.span.start] + edit.new + text[edit.span.end :]
    return text


def _of(source: Source, span: Span) -> str:
    return source.text[span.start : span.end]


def _swap(chooser: random.Random, source: Source) -> list[Edit]:
    first, second = chooser.sample(places(source).values, 2)
    return [Edit(first, _of(source, second)), Edit(second, _of(source, first))]


def _drop(chooser: random.Random, source: Source) -> list[Edit]:
    span = chooser.choice(places(source).entries)
    after = re.compile(r"\s*,").match(source.text, span.end)
    return [Edit(Span(span.start, after.end() if after else span.end), "")]


def _other_value(chooser: random.Random, source: Source) -> list[Edit]:
    return [Edit(chooser.choice(places(source).values), chooser.choice(OTHER_VALUES))]


def _value_from_elsewhere(chooser: random.Random, source: Source) -> list[Edit]:
    other = chooser.choice(sources(source.kind))
    return [Edit(chooser.choice(places(source).values), _of(other, chooser.choice(places(other).values)))]


def _misspelt(chooser: random.Random, source: Source) -> list[Edit]:
    span = chooser.choice(places(source).keys if chooser.random() < 0.5 else places(source).values)
    word, place = _of(source, span), chooser.randrange(max(1, span.end - span.start))
    return [Edit(span, chooser.choice((word[:place] + word[place + 1 :], word[: place + 1] + word[place:])))]


def _other_key(chooser: random.Random, source: Source) -> list[Edit]:
    span, other = chooser.choice(places(source).keys), chooser.choice(places(source).keys)
    return [Edit(span, _of(source, other))]


def _repeated(chooser: random.Random, source: Source) -> list[Edit]:
    lines = source.text.splitlines(keepends=True)
    number = chooser.randrange(len(lines))
    start = sum(map(len, lines[: number + 1]))
    return [Edit(Span(start, start), lines[number])]


_KINDS: dict[str, Callable[[random.Random, Source], list[Edit]]] = {
    "values swapped": _swap,
    "entry dropped": _drop,
    "value of another type": _other_value,
    "value from elsewhere": _value_from_elsewhere,
    "name misspelt": _misspelt,
    "other key": _other_key,
    "line repeated": _repeated,
}


def _broken(chooser: random.Random, content: bytes) -> tuple[bytes, str]:
    place = chooser.randrange(len(content))
    kind = chooser.choice(("bytes inserted", "bytes replaced", "bytes flipped", "cut off"))
    if kind == "cut off":
        return content[:place], kind
    if kind == "bytes flipped":
        return content[:place] + bytes([content[place] ^ 1 << chooser.randrange(8)]) + content[place + 1 :], kind
    other = chooser.choice(BROKEN)
    return content[:place] + other + content[place + (len(other) if kind == "bytes replaced" else 0) :], kind
