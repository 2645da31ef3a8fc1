"""The raw records of the reference run as one archive, and its pages."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from tools.reference import ROOT, SIZE
from tools.reference.stored import another_run

PARTS = ("runs", "tables", "claims", "machines", "stops", "reference_run.json")


def write(results: Path, path: Path) -> None:
    """Raw records, tables, verdicts and the machine's profile of all suites."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:xz", preset=9) as target:
        for part in PARTS:
            if (results / part).exists():
                target.add(results / part, part, filter=_without_owner)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


def unpack(path: Path, into: Path) -> None:
    """The reference run as a results folder."""
    if not path.exists():
        raise SystemExit(f"{path}: no such archive; the raw records of a reference run are a file of the release")
    with tarfile.open(path) as source:  # extraction filters came with Python 3.11.4, Debian 12 has 3.11.2
        plain = [member for member in source if member.isfile() or member.isdir()]
        if any(Path(member.name).is_absolute() or ".." in Path(member.name).parts for member in plain):
            raise SystemExit(f"{path}: an archive of ours stays in its folder")
        source.extractall(into, members=plain)


def build_pages(path: Path, with_picture: bool = False) -> None:
    """Build the report of the reference run; `with_picture`: also the README's picture of it."""
    from scaleproof.report.build import build
    from scaleproof.report.picture import picture
    from scaleproof.spec.suite import list_suites, load_suite

    suites = [load_suite(folder) for folder in list_suites(ROOT / "suites")]
    with tempfile.TemporaryDirectory(prefix="scaleproof-reference-") as name:
        unpack(path, Path(name))
        if why := another_run(Path(name)):
            raise SystemExit(f"{path}: {why}")
        index = build(Path(name), ROOT / "reports" / "reference", SIZE, suites)
    print(index)
    if with_picture:
        print(picture(index.with_name("das2016.html"), ROOT / "docs" / "report.png", width=1400, height=1500))
