"""Texts, symbols and order of verdicts on the pages, and the meaning of provenance marks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from scaleproof.claims import sentences
from scaleproof.claims.claims_file import ClaimResult
from scaleproof.claims.outcome import RangeFacts, StepsFacts, Verdict

NOT_JUDGED = "not judged"
ORDER: tuple[str, ...] = (*get_args(Verdict), NOT_JUDGED)
PROVENANCE = {
    "paper": "read in the paper, its abstract or the authors' talk",
    "author_code": "read in the authors' or the project's own repository",
    "secondary": "a third party that quotes, reads or replicates the paper",
    "derived": "arithmetic on sourced figures, shapes or formulas",
    "memory_high": "recalled, not read; never decides a verdict",
    "memory_medium": "recalled, not read; never decides a verdict",
    "memory_low": "recalled, not read; never decides a verdict",
    "not_recovered": "the figure was published but is not available",
}
MEANING = {
    "reproduced": "the whole interval meets the rule",
    "direction only": "not as large as published, but the same way",
    "not reproduced": "the whole interval misses the rule",
    "inconclusive": "the interval decides neither way, or there are too few launches",
    "not runnable here": "needs what this machine does not have",
    "not run at this size": "no launch behind it: this size plans none, or none finished",
    "value not recovered": "published, but the figure is not available",
    "unverified": "the published value is recalled, not read: ours stands beside it",
    "holds": "a check: the identity or the count is right in every launch",
    "fails": "a check: the identity or the count is wrong, a mistake of this code",
    NOT_JUDGED: "shown only: context, or a size without verdicts",
}


@dataclass(frozen=True, slots=True)
class ShownRule:
    """A rule as a table shows it: the finding, and folded below it the points of a range or the steps that it rests
    on."""

    finding: str
    rests_on: tuple[str, ...]


def shown_rule(claim: ClaimResult) -> ShownRule:
    """The rule of a claim, with its steps or points folded. The result of a control is part of the finding, since it
    can invalidate a verdict."""
    outcome = claim.outcome
    if outcome is None or not isinstance(outcome.facts, StepsFacts | RangeFacts):
        return ShownRule(claim.rule, ())
    finding = [sentences.finding_sentence(outcome), *sentences.control_sentences(outcome)]
    return ShownRule("; ".join(finding), tuple(sentences.clause_sentences(outcome)))


@dataclass(frozen=True, slots=True)
class Count:
    """How many claims have a verdict."""

    verdict: str
    slug: str
    count: int
    meaning: str
    lowered: int
    """Of these, the number that rest on evidence which failed validation."""


def verdict_text(claim: ClaimResult) -> str:
    """The text of a claim's verdict."""
    return claim.verdict or NOT_JUDGED


def slug(verdict: str) -> str:
    """The verdict in names of CSS classes and symbols."""
    return verdict.replace(" ", "-")


def counts(claims: list[ClaimResult]) -> list[Count]:
    """A count per verdict that occurs, in ORDER."""
    verdicts, low = (
        [verdict_text(claim) for claim in claims],
        [verdict_text(claim) for claim in claims if claim.lowered],
    )
    return [
        Count(verdict, slug(verdict), verdicts.count(verdict), MEANING[verdict], low.count(verdict))
        for verdict in ORDER
        if verdict in verdicts
    ]
