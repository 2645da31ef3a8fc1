"""The OSU micro-benchmarks are built from the files of one commit and no others. Small files stand in for theirs."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from tools.build_osu import programs, source
from tools.setup.console import CommandError, SetupError

COMPILER = """\
#!/bin/sh
case "$*" in *osu_bw.c*) [ -e "$(dirname "$0")/broken" ] && { echo "osu_bw.c:1: error" >&2; exit 1; };; esac
while [ $# -gt 0 ]; do
  case "$1" in -o) target=$2;; -DFLOAT_PRECISION=*) precision=$1;; esac; shift
done
echo "$precision" > "$target"; chmod +x "$target"
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of the right names, which count as the right ones; one has line ends of Windows."""
    folder = tmp_path / "omb"
    for path in source.SHA256:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(f"{path}\r\n".encode())
    digests = {path: hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in source.SHA256}
    monkeypatch.setattr(source, "SHA256", digests)
    return folder


def git(folder: Path, *command: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "core.autocrlf=false"]
    completed = subprocess.run(["git", "-C", folder, *identity, *command], capture_output=True, text=True, check=True)
    return completed.stdout.strip()


@pytest.fixture
def clone(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files as the named commit, with another commit checked out."""
    git(files, "init", "-q")
    git(files, "add", ".")
    git(files, "commit", "-qm", "theirs")
    monkeypatch.setattr(source, "COMMIT", git(files, "rev-parse", "HEAD"))
    (files / "util/osu_util.h").write_text("changed\n")
    git(files, "commit", "-qam", "changed")
    return files


def test_a_folder_with_the_right_files_is_taken(files):
    assert source.taken(files)["util/osu_util.h"] == b"util/osu_util.h\r\n"


def test_a_file_with_another_hash_is_refused_in_one_line(files):
    (files / "util/osu_util.h").write_bytes(b"util/osu_util.h\n")
    with pytest.raises(SetupError, match=r"omb/util/osu_util\.h is not that of commit \w+: SHA-256 \w+, not \w+$"):
        source.taken(files)


def test_a_clone_gives_the_named_commit_whatever_is_checked_out(clone):
    assert source.taken(clone)["util/osu_util.h"] == b"util/osu_util.h\r\n"


def test_a_clone_without_the_commit_is_refused_in_one_line(clone, monkeypatch):
    monkeypatch.setattr(source, "COMMIT", "f" * 40)
    with pytest.raises(SetupError, match=r"has no mpi/pt2pt/osu_latency\.c of commit f+ of https\S+: fatal: .*$"):
        source.taken(clone)


@pytest.mark.parametrize(("lacking", "says"), [("", "type: git clone"), ("util/osu_util.c", "No such file")])
def test_a_missing_source_is_one_line(files, lacking, says):
    if lacking:
        (files / lacking).unlink()
    with pytest.raises(SetupError, match=says):
        source.taken(files if lacking else files / "nowhere")


@pytest.fixture
def compiler(tmp_path: Path) -> Path:
    path = tmp_path / "mpicc"
    path.write_text(COMPILER)
    path.chmod(0o755)
    return path


def test_both_programs_are_built_with_four_decimals_and_nothing_else_is_left(files, compiler, tmp_path):
    programs.build(source.taken(files), tmp_path / "bin", compiler)
    assert {path.name: path.read_text() for path in (tmp_path / "bin").iterdir()} == {
        "osu_latency": "-DFLOAT_PRECISION=4\n",
        "osu_bw": "-DFLOAT_PRECISION=4\n",
    }


def test_a_build_that_fails_leaves_the_earlier_programs(files, compiler, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "osu_latency").write_text("earlier")
    (tmp_path / "broken").touch()
    with pytest.raises(CommandError) as caught:
        programs.build(source.taken(files), tmp_path / "bin", compiler)
    assert caught.value.output == "osu_bw.c:1: error"
    assert [path.name for path in (tmp_path / "bin").iterdir()] == ["osu_latency"]
    assert (tmp_path / "bin" / "osu_latency").read_text() == "earlier"


def test_what_a_build_lacks_is_one_line(files, compiler, tmp_path):
    with pytest.raises(SetupError, match="no mpicc beside .*; type `make env`"):
        programs.build(source.taken(files), tmp_path / "bin", tmp_path / "absent")
    (tmp_path / "bin").touch()
    with pytest.raises(SetupError, match="bin: File exists"):
        programs.build(source.taken(files), tmp_path / "bin", compiler)
