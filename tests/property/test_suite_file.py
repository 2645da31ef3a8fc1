"""For any content of a suite file, loading it gives a suite or a one-line error and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaleproof.spec.errors import SpecError
from scaleproof.spec.plan import plan
from scaleproof.spec.suite import load_suite

TEXT = (Path(__file__).parents[2] / "suites" / "_template" / "suite.yaml").read_text()
WORDS = [match.span() for match in re.finditer(r"[\w.]+|[\[\]{}:,&*-]", TEXT)]
OTHERS = [
    "",
    "null",
    "true",
    "0",
    "-1",
    "1e999",
    ".nan",
    "99999999999999999999",
    "[]",
    "{}",
    "[[1]]",
    "{a: 1}",
    "''",
    "\n",
    "\t",
    "  ",
    ": ",
    "- ",
    "&a ",
    "*a",
    "<<: ",
    "!!binary x",
    "!!set {a}",
    "2001-01-01",
    "0x10",
    "? ",
    "| ",
    "%",
    "@",
    "\x85",
    "\u2028",
    "...",
    "---",
    "ranks",
    "tcp",
    "1 KiB",
    "sizes",
    "matrix",
]


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    edits=st.lists(
        st.tuples(st.sampled_from(WORDS), st.sampled_from(OTHERS) | st.text(max_size=6)), min_size=1, max_size=2
    )
)
def test_a_changed_file_is_a_suite_or_one_line(edits: list[tuple[tuple[int, int], str]], tmp_path: Path) -> None:
    text = TEXT
    for (start, end), other in sorted(edits, reverse=True):
        text = text[:start] + other + text[end:]
    folder = tmp_path / "_template"
    folder.mkdir(exist_ok=True)
    (folder / "suite.yaml").write_text(text, encoding="utf-8", errors="replace")
    try:
        suite = load_suite(folder)
    except SpecError as mistake:
        assert str(mistake).startswith(str(folder / "suite.yaml")) and "\n" not in str(mistake)
    else:
        for name, experiment in suite.experiments.items():
            # Millions of launches are valid in a file, but take minutes to plan.
            assert all(plan(suite, name, size) for size in experiment.sizes if experiment.size(size).launches <= 1000)
