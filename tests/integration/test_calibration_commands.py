"""The commands that docs/calibration.md shows exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scaleproof.cli import main
from tools.aa_study import __main__ as study

ROOT = Path(__file__).parents[2]


def commands_of_the_docs() -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "docs" / "calibration.md").read_text(), re.DOTALL | re.MULTILINE)
    return [line.partition(" # ")[0].strip() for block in blocks for line in block.splitlines()]


@pytest.mark.parametrize("line", commands_of_the_docs())
def test_every_command_of_the_docs_is_one(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would measure is only listed."""
    program, *arguments = line.split()
    if program == "scaleproof":
        assert main(
            [
                *arguments,
                *([] if {"--show", "--dry-run"} & set(arguments) else ["--dry-run"]),
                "--results",
                str(tmp_path),
            ]
        ) in (0, 1)
    elif program == "snakemake":
        # A folder of its own: Snakemake writes into the one it runs in.
        for name in ("Snakefile", "workflows", "profiles", "suites", "environment.yml"):
            (tmp_path / name).symlink_to(ROOT / name)
        process = subprocess.run(
            [sys.executable, "-m", "snakemake", "-n", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert process.returncode == 0 and "scaleproof calibrate" in process.stdout + process.stderr
    else:
        assert (program, arguments[:2]) == ("python", ["-m", "tools.aa_study"])
        monkeypatch.setattr(sys, "argv", ["aa_study", *arguments[2:], "--help"])
        with pytest.raises(SystemExit) as ended:
            study.main()
        assert ended.value.code == 0 and arguments[2] in study.ACTIONS
