"""Launches of one side of a comparison, grouped by case, and the titles of cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaleproof.claims.launch_choice import latest, of_last_version
from scaleproof.core.record_schema import Record
from scaleproof.spec.case import AnyCase
from scaleproof.spec.common_case import NATIVE
from scaleproof.spec.launch_kind import LaunchKind


@dataclass(frozen=True, slots=True)
class Group:
    """The launches of one case on one side: those to compare, those that failed or could not run here, and how many
    finished ones are left out."""

    case: AnyCase
    launches: tuple[Record, ...]
    failed: tuple[Record, ...]
    left_out: int

    @property
    def any(self) -> Record:
        """One of its records."""
        return (*self.launches, *self.failed)[0]

    @property
    def machines(self) -> set[str]:
        """The machines of its launches; of the failed ones where no launch finished."""
        return {record.machine for record in self.launches or self.failed}

    @property
    def kinds(self) -> set[LaunchKind]:
        """The kinds of its launches; none for predictions."""
        return {kind for record in self.launches or self.failed if (kind := record.kind) is not None}


def groups(records: Sequence[Record]) -> list[Group]:
    """Groups by case and evidence. Of several machines or versions of the code the last one of a case counts, and of a
    repetition its last launch, as in claims."""
    by_case: dict[tuple[str, str], list[Record]] = {}
    for record in records:  # the case's own id: a record of older code may lack fields that now have defaults
        by_case.setdefault((record.case.case_id, record.evidence), []).append(record)
    return sorted(map(_group, by_case.values()), key=order)


def title(case: AnyCase, other: AnyCase | None = None) -> str:
    """A short title of a case, or of two that are compared, with `x against y` where they differ."""
    parts = [
        first if first == second else f"{first or 'none'} against {second or 'none'}"
        for first, second in zip(_title_parts(case), _title_parts(other or case), strict=True)
    ]
    return f"{parts[0]}: " + ", ".join(filter(None, parts[1:]))


def _title_parts(case: AnyCase) -> list[str]:
    subject = getattr(case, "operation", None) or case.value("workload") or getattr(case, "entry", None)
    transport = case.transport or "no transport"
    if case.transport and case.collective != NATIVE:
        transport += f" {case.collective}"
    if case.buffers != "registered":
        transport += f", {case.buffers} buffers"
    data = f"{kind} data" if (kind := case.value("workload.data")) else ""
    ranks = f"{case.ranks} rank{'s' if case.ranks != 1 else ''}"
    return [
        f"{case.suite} {case.experiment}",
        case.arm,
        " ".join(filter(None, (case.program, subject))),
        data,
        transport,
        ranks,
    ]


def _group(records: Sequence[Record]) -> Group:
    ordered = sorted(records, key=lambda record: (record.started_at, record.launch))
    finished = [record for record in ordered if record.status == "ok"]
    failed = tuple(record for record in ordered if record.status != "ok")
    if not finished:
        return Group(failed[-1].case, (), failed, 0)
    launches = tuple(latest(of_last_version(finished), repetition))
    return Group(launches[0].case, launches, failed, len(finished) - len(launches))


def repetition(record: Record) -> tuple[tuple[int, str], int]:
    """What makes launches of one case the same repetition."""
    return record.block, record.seed


def order(group: Group) -> tuple[str, ...]:
    """By which groups are sorted."""
    case = group.case
    return (
        case.suite,
        case.experiment,
        case.program,
        str(case.value("workload", "")),
        f"{case.ranks:06}",
        case.arm,
        case.case_id,
        group.any.evidence,
    )
