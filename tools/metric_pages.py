"""`python -m tools.metric_pages`: writes docs/metrics/*.md from the docstrings of the metrics, those of the suites
too."""

from __future__ import annotations

from pathlib import Path

from scaleproof.claims.metrics import METRICS
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.spec.suite import list_suites

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "metrics"


def pages() -> dict[str, str]:
    """Every metric's page by its name; ValueError where two metrics share one."""
    metrics = dict(METRICS)
    for folder in list_suites(ROOT / "suites"):
        of_suite = suite_metrics(folder)
        if twins := [name for name in of_suite if metrics.get(name, of_suite[name]) is not of_suite[name]]:
            raise ValueError(f"{folder.name}: another metric has the name {', '.join(twins)} already, and its page")
        metrics |= of_suite
    return {name: metric.page_text for name, metric in sorted(metrics.items())}


def main() -> None:
    """Write what changed and remove pages of metrics that are gone."""
    generated = pages()
    for path in PAGES.glob("*.md"):
        if path.stem not in generated:
            path.unlink()
    for name, text in generated.items():
        path = PAGES / f"{name}.md"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
