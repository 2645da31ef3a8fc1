"""The files of results/reference that are no part of the reference run: each is made by a command of its own. Their
digests stand beside them, so that a copy that was edited is shown nowhere."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from tools.reference import REFERENCE

FILE = "digests.json"
"""SHA-256 by name of the file."""
BENCH = ("bench.json", "bench.md")
STUDY = ("aa_study.csv", "aa_study.json")
LAUNCH_FACTORS, NETNS = "launch_factors.json", "netns.json"
COMPARISONS = "crosscheck_full.json"
MADE_BY = {
    **dict.fromkeys(BENCH, "`make bench`, then `python -m tools.reference keep`"),
    **dict.fromkeys(STUDY, "`make aa-study`"),
    COMPARISONS: "`scaleproof run crosscheck --size full`, then `python -m tools.reference compared RESULTS`",
    LAUNCH_FACTORS: "`python -m benchmarks.launch_factors`",
    NETNS: f"`python -m benchmarks.netns --into results/reference/{NETNS}`",
}
"""The files, and the commands that make them and their digests."""


def keep_bench(folder: Path, reference: Path = REFERENCE) -> None:
    """Copy what `make bench` left in a folder. SystemExit where it left nothing."""
    for name in BENCH:
        if not (folder / name).exists():
            raise SystemExit(f"{folder / name}: missing; `make bench` writes it")
    for name in BENCH:
        shutil.copyfile(folder / name, reference / name)
        note(reference / name, reference)


def note(path: Path, reference: Path = REFERENCE) -> None:
    """Note the digest of a file that its command has just written; a file elsewhere needs none."""
    if path.resolve().parent == reference.resolve() and path.name in MADE_BY:
        noted = _noted(reference) | {path.name: _digest(path)}
        (reference / FILE).write_text(json.dumps(dict(sorted(noted.items())), indent=1) + "\n")


def check(reference: Path = REFERENCE, names: Sequence[str] = tuple(MADE_BY)) -> None:
    """SystemExit with one line where a file is not as its command left it."""
    noted = _noted(reference)
    for name in names:
        path = reference / name
        if not path.exists():
            raise SystemExit(f"{path}: missing; {MADE_BY[name]} makes it")
        if noted.get(name) != _digest(path):
            raise SystemExit(f"{path}: not as {FILE} has it, so it was changed by hand; {MADE_BY[name]} makes it anew")


def _noted(folder: Path) -> dict[str, str]:
    path = folder / FILE
    if not path.exists():
        return {}
    try:
        return {str(name): str(digest) for name, digest in json.loads(path.read_bytes()).items()}
    except (ValueError, AttributeError):
        raise SystemExit(f"{path}: no digests by file name; `git checkout {path.name}` restores them") from None


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
