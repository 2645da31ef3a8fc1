"""A suite's own programs, loaded in the process that also looks at the code that they use."""

from __future__ import annotations

from scaleproof.paths import PROJECT
from scaleproof.programs.own import load_entry
from scaleproof.record import used_code
from scaleproof.spec.suite import load_suite


def test_the_code_of_a_program_is_known_after_its_module_was_loaded() -> None:
    folder = PROJECT / "suites" / "crosscheck"
    case = next(case for case in load_suite(folder).experiments["tcp"].sizes["ci"].cases if case.arm == "iperf3")
    load_entry(folder / "programs", "iperf3")  # it imports its neighbour suite_programs.tools
    for cached in (used_code._hashes, used_code._source, used_code._folders):
        cached.cache_clear()
    assert "scaleproof.rank.process_lifetime" in used_code.used_files(case, str(folder / "programs"))
