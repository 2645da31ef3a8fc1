"""A launch that fails because Slurm is ending the job is the last one; one that fails while the job runs is not."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scaleproof.launch.nodes import allocated_nodes, slurm


def reason_of_end(monkeypatch: pytest.MonkeyPatch, output: str, failed: bool = True) -> str:
    monkeypatch.setattr(slurm, "_run", lambda *command, fail=True: output)
    record = SimpleNamespace(failure=SimpleNamespace(code="start_failed") if failed else None)
    nodes = SimpleNamespace(allocation=SimpleNamespace(job=SimpleNamespace(id="7")))
    return allocated_nodes.taken_away(record, nodes)  # type: ignore[arg-type]


@pytest.mark.parametrize("state", ["TIMEOUT", "COMPLETING", "CANCELLED", "PENDING"])
def test_a_job_that_is_no_longer_running_is_named_with_its_state(monkeypatch, state):
    assert (
        reason_of_end(monkeypatch, f"JobId=7 JobName=x JobState={state} Reason=TimeLimit")
        == f"Slurm ends job 7 ({state})"
    )


@pytest.mark.parametrize(
    ("end", "expected"),
    [("2020-01-01T00:00:00", "Slurm ends job 7 (TIMEOUT)"), ("2999-01-01T00:00:00", ""), ("Unknown", "")],
)
def test_no_launch_starts_after_the_end_of_a_job_that_slurm_still_calls_running(monkeypatch, end, expected):
    assert reason_of_end(monkeypatch, f"JobId=7 JobState=RUNNING EndTime={end} Reason=None") == expected


def test_a_running_job_goes_on_and_so_does_one_that_slurm_does_not_describe(monkeypatch):
    assert reason_of_end(monkeypatch, "JobId=7 JobState=RUNNING Reason=None") == reason_of_end(monkeypatch, "") == ""
    assert reason_of_end(monkeypatch, "JobId=7 JobState=TIMEOUT", failed=False) == ""


def test_outside_of_slurm_no_command_is_run(monkeypatch):
    monkeypatch.setattr(slurm, "_run", lambda *command, fail=True: pytest.fail("asked"))
    record = SimpleNamespace(failure=SimpleNamespace(code="start_failed"))
    assert allocated_nodes.taken_away(record, None) == ""  # type: ignore[arg-type]
    outside = SimpleNamespace(allocation=SimpleNamespace(job=None))
    assert allocated_nodes.taken_away(record, outside) == ""  # type: ignore[arg-type]
