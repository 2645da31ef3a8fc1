"""The container recipe fits this clone. Its commands were run by hand in a bare Debian 12; these tests notice when they
can no longer work."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tools.setup import machine

ROOT = Path(__file__).parents[3]
RECIPE = re.sub(r"\\\n\s*", "", (ROOT / "containers" / "Dockerfile").read_text())
IGNORED = [
    line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith(("#", "!"))
]
LINES = [line for line in RECIPE.splitlines() if line and not line.startswith("#")]


def of(word: str) -> list[str]:
    """Arguments of an instruction."""
    return [line.removeprefix(word).strip() for line in LINES if line.startswith(f"{word} ")]


def ignored(path: str) -> bool:
    """Whether the build ignores this path."""
    return any(
        fnmatch(path, pattern)
        or path.startswith(f"{pattern}/")
        or fnmatch(Path(path).name, pattern.removeprefix("**/"))
        for pattern in IGNORED
    )


def test_what_it_copies_is_there_and_not_left_out() -> None:
    for line in of("COPY"):
        *sources, _ = line.split()
        for source in sources:
            assert (ROOT / source).exists() and not ignored(source), source
    assert "." in [line.split()[0] for line in of("COPY")]


def test_it_leaves_out_what_a_clone_made_and_nothing_that_is_kept_in_git() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    assert [path for path in filter(None, tracked) if ignored(path) and not path.startswith("results/reference/")] == []
    made = [
        line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if line and not line.startswith("!")
    ]
    assert [name for name in made if not ignored(name.replace("*", "x"))] == []


def test_it_installs_what_set_up_asks_for_and_runs_it() -> None:
    (installed,) = [
        re.split(r"\s+", match[1].strip())
        for line in of("RUN")
        if (match := re.search(r"--no-install-recommends\s+([^&]+)", line))
    ]
    assert {package.name for package in machine.ALWAYS} <= set(installed)
    assert {"openssh-client", "openssh-server"} <= set(installed), "the remote shell of the manifests"
    targets = [target for line in of("RUN") for target in re.findall(r"(?:^|&& )(?:\w+=\S+ )?make (\w+)", line)]
    assert targets == ["env"]
    assert subprocess.run(["make", "-n", *targets], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_its_commands_are_found_where_make_env_puts_them() -> None:
    (folder,) = of("WORKDIR")
    assert any(line.startswith(f"PATH={folder}/.venv/bin:") for line in of("ENV")) and of("COPY")[-1] == f". {folder}"


@pytest.mark.parametrize("name", ["ssh.conf", "sshd.conf"])
def test_settings_of_the_remote_shell_are_one_a_line(name: str) -> None:
    for line in (ROOT / "containers" / name).read_text().splitlines():
        assert line.startswith("#") or re.fullmatch(r"[A-Z][A-Za-z]+ \S+", line), line
