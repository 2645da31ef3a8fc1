"""YAML with line numbers: plain data, and for every key and item the line it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor

from scaleproof.spec.errors import SpecError
from scaleproof.spec.errors import shown as shown
from scaleproof.spec.programs import OwnPrograms, own_programs

Key = tuple[str | int, ...]
MAX_ENTRIES = 100_000
"""Aliases of aliases grow without bound; no suite comes near this."""
_TEXT, _MERGE = "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


@dataclass(frozen=True)
class Document:
    """A file's data; `lines` maps the path of each key or item to its line, from 1."""

    file: Path
    data: Any
    lines: dict[Key, int]

    @cached_property
    def programs(self) -> OwnPrograms:
        """Of the suite whose file this is: read once, since each of its cases has their digest."""
        return own_programs(self.file.parent)

    def line(self, path: Key) -> int:
        """The line of the path, or of the nearest thing around it."""
        return next((self.lines[path[:depth]] for depth in range(len(path), -1, -1) if path[:depth] in self.lines), 1)

    def error(self, path: Key, message: str) -> SpecError:
        """`file:line: key: message`, on one line."""
        return SpecError(f"{self.place(path)}: {' '.join(message.split())}")

    def place(self, path: Key) -> str:
        """`file:line: key`."""
        return f"{shown(self.file)}:{self.line(path)}" + (f": {dotted(path)}" if path else "")


def dotted(path: Key) -> str:
    """('sizes', 'ci', 'matrix', 0) -> 'sizes.ci.matrix[0]'. Characters that would break the one line are escaped."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    return text if text.isprintable() else ascii(text)[1:-1]


def read_document(file: Path) -> Document:
    """Read a YAML file safely; raises SpecError for a missing file, wrong syntax, a repeated key or a key that is no
    text."""
    text = _text(file)
    lines: dict[Key, int] = {(): 1}
    try:
        loader, node = _composed(text)
        data = None if node is None else _Reader(file, loader, lines).read(node, ())
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        line = min(line, text.count("\n") + 1)  # YAML also counts line breaks that editors do not show as lines
        raise SpecError(f"{shown(file)}:{line}: not valid YAML: {' '.join(str(error.problem).split())}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(
            f"{shown(file)}:{line}: not valid YAML: character #x{ord(text[error.position]):04x} is not allowed"
        ) from None
    except RecursionError:
        line = lines[max(lines, key=len)] if len(lines) > 1 else _deepest_line(text)
        raise SpecError(f"{shown(file)}:{line}: not usable: nested too deeply") from None
    return Document(file, data, lines)


def _text(file: Path) -> str:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        raise SpecError(f"{shown(file)}: no such file") from None
    except OSError as error:
        raise SpecError(f"{shown(file)}: cannot be read: {error.strerror}") from None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{shown(file)}:{line}: not UTF-8 text: byte {content[error.start]:#04x}") from None


def _deepest_line(text: str) -> int:
    """The line that is nested most deeply, also of a text that cannot be composed."""
    depth, deepest, line = 0, 0, 1
    try:
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > deepest:
                deepest, line = depth, event.start_mark.line + 1 if event.start_mark else line
    except yaml.YAMLError:
        pass  # what came before it was too deep already
    return line


class _FastLoader(Composer, yaml.CSafeLoader):
    """Events from libyaml, ten times as fast as PyYAML's own; nodes from PyYAML, whose recursion has a limit."""

    def __init__(self, text: str) -> None:
        yaml.CSafeLoader.__init__(self, text)
        Composer.__init__(self)


def _composed(text: str) -> tuple[SafeConstructor, yaml.Node | None]:
    """The loader and its root node; None: the file is empty. What is wrong is said by PyYAML's own parser."""
    try:
        fast = _FastLoader(text)
        return fast, fast.get_single_node()
    except yaml.YAMLError:
        loader = yaml.SafeLoader(text)
        return loader, loader.get_single_node()


class _Reader:
    """Turns composed nodes into data and notes their lines."""

    def __init__(self, file: Path, loader: SafeConstructor, lines: dict[Key, int]) -> None:
        self.file, self.loader, self.lines = file, loader, lines

    def read(self, node: yaml.Node, path: Key) -> Any:
        if len(self.lines) > MAX_ENTRIES:
            raise self._document().error(path[:1], f"more than {MAX_ENTRIES} entries, aliases written out")
        if isinstance(node, yaml.MappingNode):
            return {key: self.read(value, (*path, key)) for key, value in self._pairs(node, path)}
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self.lines[*path, index] = item.start_mark.line + 1
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return self.loader.construct_object(node)

    def _pairs(self, node: yaml.MappingNode, path: Key) -> Iterator[tuple[str, yaml.Node]]:
        pairs: dict[str, yaml.Node] = {}
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            if key_node.tag != _TEXT:
                self.lines[path] = line
                advice = (
                    "write the fields out, or put them in 'base'" if key_node.tag == _MERGE else "write it in quotes"
                )
                raise self._document().error(path, f"key {getattr(key_node, 'value', '')!r:.40} is no text; {advice}")
            key = key_node.value
            if key in pairs:
                first = self.lines[*path, key]
                self.lines[*path, key] = line
                raise self._document().error((*path, key), f"repeated key; it stands on line {first} already")
            self.lines[*path, key] = line
            pairs[key] = value
        yield from pairs.items()

    def _document(self) -> Document:
        return Document(self.file, None, self.lines)
