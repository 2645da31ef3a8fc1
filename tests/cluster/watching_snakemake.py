"""Snakemake that looks after its Slurm jobs every second.

Its executor waits 10 s longer after each look at which no job has ended, so it sees the end of a job of a minute up to
half a minute late; no option changes that."""

from __future__ import annotations

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

INTERVAL_S = 1.0


class _Constant:
    """An attribute of the executor that stays what it is."""

    def __get__(self, executor: RemoteExecutor | None, _: type | None = None) -> float:
        return INTERVAL_S

    def __set__(self, executor: RemoteExecutor, value: float) -> None:
        pass


if __name__ == "__main__":
    assert "next_seconds_between_status_checks" in vars(RemoteExecutor)
    RemoteExecutor.next_seconds_between_status_checks = _Constant()
    main()
