"""The page of a suite: figures with their tables, claims with their sources, and planned launches."""

from __future__ import annotations

from typing import Any

from scaleproof.record.machine import MachineProfile
from scaleproof.report import gpu_logs, inputs, levels, messages, own, training
from scaleproof.report.data import SuiteData
from scaleproof.report.figures.style import looks
from scaleproof.report.groups import arm
from scaleproof.report.headlines.page import headlines
from scaleproof.report.machine import with_floors
from scaleproof.report.pages import Pages
from scaleproof.report.sections import Section
from scaleproof.report.settling import settling_table
from scaleproof.report.tuned import tuned_sections


def write(pages: Pages, data: SuiteData, profiles: dict[str, MachineProfile | None]) -> None:
    """Write <suite>.html."""
    ids = [claim.id for claim in data.claims]
    settled = settling_table(data)
    values: dict[str, Any] = {
        "evidence_text_of": data.evidence_text,
        "computed": any(run.record and run.record.trajectory for run in data.runs),
        "attained": data.attained,
        "base_attained": data.base_attained,
    }
    values |= {
        "claims": data.claims,
        "first": [ids.index(id) == position for position, id in enumerate(ids)],
        "pages": data.launches,
    }
    pages.write(
        f"{data.name}.html",
        "suite.html.j2",
        suite=data.suite,
        counts=data.counts(),
        runs=data.runs,
        inputs=inputs.summary(run.record for run in data.runs if run.record),
        settled=settled.table,
        unsettled=settled.commands,
        headlines=headlines(data),
        sections=[with_floors(part, profiles) for part in sections(data)],
        **values,
    )


def sections(data: SuiteData) -> list[Section]:
    """All sections for which there are launches."""
    drawn = looks({arm(run): run.row["transport"] for run in data.runs})
    parts = levels.sections(data, drawn) + training.sections(data.completed("train"), drawn)
    parts += own.sections(data, drawn) + gpu_logs.sections(data) + tuned_sections(data)
    return parts + [
        part
        for program in ("transfer", "collective")
        for part in messages.sections(data.completed(program), program, drawn)
    ]
