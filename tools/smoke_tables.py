"""`python -m tools.smoke_tables`: writes what each suite runs at size smoke into its README, between two markers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from scaleproof.spec.experiment import Experiment, Size
from scaleproof.spec.suite import Suite, list_suites, load_suite
from scaleproof.spec.units import format_bytes
from tools.reference import REFERENCE
from tools.reference.stored import StoredSuite, stored_suite

ROOT = Path(__file__).resolve().parents[1]
SMOKE = "smoke"
BEGIN = "<!-- smoke: written by `python -m tools.smoke_tables` -->"
END = "<!-- end of smoke -->"


def section(suite: Suite, reference: Path = REFERENCE) -> str:
    """The section of a suite's README: a row for each experiment with this size, then those without it.
    `reference`: the folder of the stored reference run, which is of this size."""
    at_smoke = {name: each for name, each in suite.experiments.items() if SMOKE in each.sizes}
    rows = [_row(experiment, experiment.size(SMOKE)) for experiment in at_smoke.values()]
    planned = {name: _launches(experiment.size(SMOKE)) for name, experiment in at_smoke.items()}
    stored = stored_suite(suite.name, reference)
    beside = f"; {_beside(planned, stored)}" if stored else ""
    others = [name for name in suite.experiments if name not in at_smoke]
    larger = f" Not at this size: {', '.join(others)}." if others else ""
    return "\n".join(
        [
            "## Size smoke",
            "",
            f"{sum(planned.values())} launches{beside}.{larger}",
            "",
            "| experiment | arms | networks, message sizes | ranks | cases | launches | what for |",
            "|---|---|---|---|---|---|---|",
            *rows,
        ]
    )


def _beside(planned: dict[str, int], stored: StoredSuite) -> str:
    """The launches that the stored run had of a suite, with its minutes, beside today's plan by experiment."""
    total = stored.launches.total()
    other = [name for name in {**planned, **stored.launches} if planned.get(name, 0) != stored.launches[name]]
    number = "the same number" if total == sum(planned.values()) else str(total)
    absent = f", {stored.not_runnable} of them not runnable there," if stored.not_runnable else ","
    parts = ", ".join(f"{stored.launches[name] or 'none'} of {name}" for name in other)
    where = f" ({parts})" if other else ""
    return (
        f"the stored reference run had {number}{where}{absent} in {stored.minutes:.1f} minutes with noise floors and "
        "verdicts"
    )


def _row(experiment: Experiment, size: Size) -> str:
    counts = Counter(case.arm for case in size.cases)
    arms = ", ".join(arm if count == 1 else f"{arm} ({count} cases)" for arm, count in counts.items())
    ranks = ", ".join(str(count) for count in sorted({case.ranks for case in size.cases}))
    cells = [experiment.name, arms, _moved(size), ranks, len(size.cases), _launches(size), experiment.summary]
    return f"| {' | '.join(map(str, cells))} |"


def _moved(size: Size) -> str:
    """The networks that are trained, and the range of message sizes of the other programs."""
    networks = sorted({name for case in size.cases if (name := case.value("workload", None))})
    sizes = {nbytes for case in size.cases for nbytes in case.value("sizes", ())}
    extent = [format_bytes(nbytes) for nbytes in sorted({min(sizes), max(sizes)})] if sizes else []
    return ", ".join([*networks, *([" to ".join(extent)] if extent else [])])


def _launches(size: Size) -> int:
    return size.launches * size.campaigns * len(size.cases)


def with_section(readme: str, text: str) -> str:
    """The README with this text between its markers. Raises ValueError when it has no markers."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"has no lines {BEGIN!r} and {END!r}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def readmes() -> dict[Path, str]:
    """Every suite's README by its path, as it should be."""
    return {
        folder / "README.md": with_section((folder / "README.md").read_text(), section(load_suite(folder)))
        for folder in list_suites(ROOT / "suites")
    }


def main() -> None:
    """Write what changed."""
    for path, text in readmes().items():
        if path.read_text() != text:
            path.write_text(text)
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
