"""Shared libraries that are mapped into a process: file, version, build. They show what runs; a list of packages would
show what is installed."""

from __future__ import annotations

import functools
import os
import re
import struct
from dataclasses import dataclass
from pathlib import Path

_NUMBERED = re.compile(r"\.so\.(\d[\w.]*)$")
_LOAD, _DYNAMIC, _NOTE = 1, 2, 4
_STRTAB, _SONAME, _VERDEF, _VERDEFNUM = 5, 14, 0x6FFFFFFC, 0x6FFFFFFD
_GNU_BUILD_ID = 3
UNREADABLE = "not readable"


def loaded_libraries(pid: int | str = "self") -> dict[str, str]:
    """Identity of every library mapped into a process, by file name. Extension modules of Python packages are left out:
    they come with their packages."""
    paths = {
        line[line.index("/") :]
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines()
        if ".so" in line and "/" in line
    }
    libraries: dict[str, str] = {}
    for path in sorted(path for path in paths if ".cpython-" not in path and ".abi3." not in path):
        folder, _, name = path.rpartition("/")
        # Two files can have one name, such as torch's libgomp and the system's; both run.
        libraries[f"{name} of {folder.rpartition('/')[2]}" if name in libraries else name] = identity(path)
    return libraries


@functools.cache
def identity(path: str) -> str:
    """`VERSION, build ID`. Version: the real file's name, else the newest version symbol it defines, else its SONAME.
    Build id: 16 digits, else the size."""
    if path.endswith(" (deleted)"):
        return f"{UNREADABLE}: deleted while in use"
    try:
        elf = read_elf(path)
        size = os.stat(path).st_size
    except (OSError, ValueError, struct.error) as error:
        return f"{UNREADABLE}: {getattr(error, 'strerror', None) or error}"
    numbered = _NUMBERED.search(os.path.realpath(path))
    version = numbered.group(1) if numbered and "." in numbered.group(1) else elf.version or elf.soname or "no version"
    return f"{version}, build {elf.build_id[:16]}" if elf.build_id else f"{version}, {size} bytes"


@dataclass(frozen=True, slots=True)
class Elf:
    """Names and versions in a 64-bit little-endian ELF file; empty where the file has none."""

    soname: str
    build_id: str
    version: str
    """Newest version symbol that it defines, such as GLIBC_2.36."""


def read_elf(path: str) -> Elf:
    """Read a few pages of the file; ValueError if it is no 64-bit little-endian ELF file."""
    with open(path, "rb", buffering=0) as file:
        return _Reader(file.fileno()).elf()


class _Reader:
    """Segments of one open file (ELF-64 Object File Format, version 1.5; symbol versions as in the LSB core
    specification)."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        head = self.read(0, 64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no 64-bit little-endian ELF file")
        (table,), (entry_size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        entries = self.read(table, entry_size * count)
        # type, flags, offset, address, physical address, size in the file
        self.segments = [struct.unpack_from("<IIQQQQ", entries, index * entry_size) for index in range(count)]

    def read(self, offset: int, size: int) -> bytes:
        content = os.pread(self.descriptor, size, offset)
        if len(content) < size:
            raise ValueError("truncated")
        return content

    def elf(self) -> Elf:
        dynamic = self._dynamic()
        strings = self._offset(dynamic[_STRTAB]) if _STRTAB in dynamic else 0
        soname = self._text(strings + dynamic[_SONAME]) if strings and _SONAME in dynamic else ""
        return Elf(soname, self._build_id(), self._version(dynamic, strings))

    def _dynamic(self) -> dict[int, int]:
        for kind, _, offset, _, _, size in self.segments:
            if kind == _DYNAMIC:
                return dict(struct.iter_unpack("<QQ", self.read(offset, size // 16 * 16)))
        return {}

    def _build_id(self) -> str:
        for kind, _, offset, _, _, size in self.segments:
            notes, position = self.read(offset, size) if kind == _NOTE else b"", 0
            while position + 12 <= len(notes):
                name_size, data_size, note = struct.unpack_from("<III", notes, position)
                data = position + 12 + -(-name_size // 4) * 4
                if note == _GNU_BUILD_ID and notes[position + 12 : position + 16] == b"GNU\0":
                    return notes[data : data + data_size].hex()
                position = data + -(-data_size // 4) * 4
        return ""

    def _version(self, dynamic: dict[int, int], strings: int) -> str:
        names, position = [], self._offset(dynamic[_VERDEF]) if _VERDEF in dynamic and strings else 0
        for _ in range(dynamic.get(_VERDEFNUM, 0) if position else 0):
            flags, _, _, _, first, following = struct.unpack("<HHHIII", self.read(position + 2, 18))
            if not flags & 1:  # the base definition is the file's name
                names.append(self._text(strings + struct.unpack("<I", self.read(position + first, 4))[0]))
            position += following
        public = [name for name in names if "PRIVATE" not in name and re.search(r"\d", name)]
        return max(public, key=lambda name: [int(number) for number in re.findall(r"\d+", name)], default="")

    def _offset(self, address: int) -> int:
        """Offset in the file of the bytes at an address."""
        for kind, _, offset, start, _, size in self.segments:
            if kind == _LOAD and start <= address < start + size:
                return offset + address - start
        raise ValueError("an address outside of the file")

    def _text(self, offset: int) -> str:
        return os.pread(self.descriptor, 256, offset).partition(b"\0")[0].decode(errors="replace")
