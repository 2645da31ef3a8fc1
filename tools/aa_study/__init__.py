"""Compares identical arms of what claims judge: how often a difference is found that is not there, and the smallest
slowdown that is found. Real launches, kept in results/reference/."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VALUES, STUDY = (ROOT / "results" / "reference" / name for name in ("aa_study.csv", "aa_study.json"))
DOCS = ROOT / "docs" / "calibration.md"
