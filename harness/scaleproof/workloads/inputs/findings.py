"""Results of checks of a data set, and the error when a check fails."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Outcome = Literal["pass", "warn", "fail", "not applicable"]
Number = float | str | None


class BadInput(ValueError):
    """The data are not those of the case."""

    code = "bad_input"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check of one data set. Has the fields of core/record_schema.py's InputCheck, which would import
    pyarrow on every rank."""

    check: str
    dataset: str
    name: str
    value: Number
    bound: str
    outcome: Outcome
    detail: str = ""


class Findings:
    """Results of the checks of one data set, in the order of the checks."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.findings: list[Finding] = []

    def add(self, check: str, name: str, value: Number, bound: str, outcome: Outcome, detail: str = "") -> None:
        """Adds a finding; floats are rounded to 6 digits."""
        value = float(f"{value:.6g}") if isinstance(value, float) else value
        self.findings.append(Finding(check, self.dataset, name, value, bound, outcome, detail))

    def judge(
        self,
        check: str,
        name: str,
        value: Number,
        bound: str,
        holds: bool,
        detail: str = "",
        *,
        otherwise: Outcome = "warn",
    ) -> None:
        """Adds a finding that passes if `holds`, with outcome `otherwise` if not."""
        self.add(check, name, value, bound, "pass" if holds else otherwise, detail)

    def at_most(self, check: str, name: str, value: float, limit: float, detail: str = "") -> None:
        """Warns above the limit."""
        self.judge(check, name, float(value), f"at most {limit:g}", value <= limit, detail)

    def at_least(self, check: str, name: str, value: float, limit: float, detail: str = "") -> None:
        """Warns below the limit."""
        self.judge(check, name, float(value), f"at least {limit:g}", value >= limit, detail)

    def between(self, check: str, name: str, value: float, low: float, high: float, detail: str = "") -> None:
        """Warns outside of the limits."""
        self.judge(check, name, float(value), f"{low:g} to {high:g}", low <= value <= high, detail)

    def absent(self, check: str, name: str, why: str, value: Number = None) -> None:
        """Adds a check that does not apply to this data set, with the reason."""
        self.add(check, name, value, "none", "not applicable", why)


def settle(record: list[dict[str, Any]], findings: list[Finding]) -> None:
    """Adds the findings to the launch's record. Raises BadInput for the first one that failed, so that nothing is timed
    on bad data."""
    record.extend(asdict(finding) for finding in findings)
    for finding in findings:
        if finding.outcome == "fail":
            label = f"{finding.check} {finding.name} of {finding.dataset}"
            detail = f"; {finding.detail}" if finding.detail else ""
            raise BadInput(f"{label}: {finding.value}, must be {finding.bound}{detail}")
