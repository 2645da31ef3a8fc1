"""The reference run: one finished run of all suites, stored as text in results/reference/. Its raw records are attached
to the release and are not in the repository."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = ROOT / "results" / "reference"
SIZE = "smoke"
ARCHIVE = ROOT / "dist" / f"reference.{SIZE}.tar.xz"
"""Where `pack` writes the raw records and `pages` looks for them, unless a path is given; git ignores the folder."""
