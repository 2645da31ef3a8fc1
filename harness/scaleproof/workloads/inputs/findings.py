"""What a check of a data set says, and what happens when the data are not what they should be."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Outcome = Literal["pass", "warn", "fail", "not applicable"]
Number = float | str | None


class BadInput(ValueError):
    """The data are not what the case says."""

    code = "bad_input"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check of one data set; the fields of core/record_schema.py's InputCheck, whose import would cost every rank
    pyarrow."""

    check: str
    dataset: str
    name: str
    value: Number
    bound: str
    outcome: Outcome
    detail: str = ""


class Findings:
    """The findings of one data set, in the order of the checks."""

    def __init__(self, dataset: str) -> None:
        self.dataset = dataset
        self.found: list[Finding] = []

    def add(self, check: str, name: str, value: Number, bound: str, outcome: Outcome, detail: str = "") -> None:
        """A finding as it is."""
        value = float(f"{value:.6g}") if isinstance(value, float) else value
        self.found.append(Finding(check, self.dataset, name, value, bound, outcome, detail))

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
        """Passes when it holds."""
        self.add(check, name, value, bound, "pass" if holds else otherwise, detail)

    def at_most(self, check: str, name: str, value: float, limit: float, detail: str = "") -> None:
        """Warns above the limit."""
        self.judge(check, name, float(value), f"at most {limit:g}", value <= limit, detail)

    def at_least(self, check: str, name: str, value: float, limit: float, detail: str = "") -> None:
        """Warns below the limit."""
        self.judge(check, name, float(value), f"at least {limit:g}", value >= limit, detail)

    def between(self, check: str, name: str, value: float, low: float, high: float, detail: str = "") -> None:
        """Warns outside."""
        self.judge(check, name, float(value), f"{low:g} to {high:g}", low <= value <= high, detail)

    def absent(self, check: str, name: str, why: str, value: Number = None) -> None:
        """Not applicable to this data set, and why."""
        self.add(check, name, value, "none", "not applicable", why)


def settle(record: list[dict[str, Any]], found: list[Finding]) -> None:
    """Put the findings into the launch's record; BadInput with the first one that failed, so that nothing is timed on
    it."""
    record.extend(asdict(finding) for finding in found)
    for finding in found:
        if finding.outcome == "fail":
            what = f"{finding.check} {finding.name} of {finding.dataset}"
            detail = f"; {finding.detail}" if finding.detail else ""
            raise BadInput(f"{what}: {finding.value}, must be {finding.bound}{detail}")
