"""A comparison's text, JSON and page do not depend on the order of sets and dictionaries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit.compare.compare_records import FAST, HERE, OTHER_RANK, RANK, SLOW, THERE, calibrate, code, launches
from tests.unit.records import case

TWICE = """
import sys
from scaleproof.cli import main
results, page = sys.argv[1:]
main(["compare", "@commit:0ld", "@commit:new", "--results", results, "--page", page])
main(["compare", "@commit:0ld", "@commit:new", "--results", results, "--json"])
"""


def test_equal_records_give_equal_bytes_whatever_the_hash_seed(tmp_path: Path) -> None:
    results = tmp_path / "results"
    launches(results, FAST[:4], "a", code=code("0ld"), environment=HERE, facts=RANK)
    launches(
        results,
        FAST[4:],
        "aa",
        first=4,
        code=code("0ld"),
        environment={**HERE, "governor": "schedutil", "numa": 2},
        facts=OTHER_RANK,
    )
    launches(results, SLOW, "b", at=1, code=code("new", digest="e"), environment=THERE, facts=OTHER_RANK)
    launches(results, FAST, "c", case=case(sizes=[2048]), code=code("0ld"))
    launches(results, FAST, "d", case=case(sizes=[4096]), code=code("0ld"))
    calibrate(results)
    outputs = []
    for seed in ("1", "2"):
        page = tmp_path / seed / "compare.html"
        ended = subprocess.run(
            [sys.executable, "-c", TWICE, str(results), str(page)],
            capture_output=True,
            timeout=60,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin"},
        )
        outputs.append((ended.stdout, page.read_bytes()))
    assert outputs[0] == outputs[1] and len(outputs[0][0]) > 5000 and b"<svg" in outputs[0][1]
