"""The kinds of launches that the study is about, and the value of a launch."""

from __future__ import annotations

from dataclasses import dataclass

from scaleproof.claims.metrics import METRICS
from scaleproof.core.record_schema import Record
from scaleproof.record.store import Store
from scaleproof.spec.case import AnyCase, CollectiveCase
from scaleproof.spec.suite import Suite, load_suite
from scaleproof.spec.units import format_bytes
from tools.aa_study import ROOT

EXPERIMENT, SIZE = "pool", "full"
ARMS = ("a", "b")


@dataclass(frozen=True, slots=True)
class Kind:
    """What is compared: a metric of one case, at one message size where it is per size."""

    case: AnyCase
    """That of arm `a`."""
    metric: str
    nbytes: int | None = None

    @property
    def name(self) -> str:
        """train_tcp, all_reduce_64_mib_shm."""
        size = "" if self.nbytes is None else f"_{format_bytes(self.nbytes).replace(' ', '_').lower()}"
        program = "all_reduce" if isinstance(self.case, CollectiveCase) else self.case.program
        return f"{program}{size}_{self.case.transport}"

    @property
    def title(self) -> str:
        """As it stands in a table."""
        if self.nbytes is None:
            return f"training on 2 ranks over {self.case.transport}"
        return f"all-reduce of {format_bytes(self.nbytes)} over {self.case.transport}"

    @property
    def higher_is_better(self) -> bool:
        """Whether the metric is a rate."""
        return METRICS[self.metric].direction == "higher"

    def case_of(self, arm: str) -> AnyCase:
        """The case of an arm of the pool."""
        changed: AnyCase = self.case.changed({"arm": arm})
        return changed

    def value(self, record: Record, store: Store) -> float | None:
        """The metric of a launch."""
        metric, samples = METRICS[self.metric], store.samples(record).to_pandas()
        if metric.size is not None and self.nbytes is not None:
            return metric.size(record, samples, self.nbytes)
        return metric.launch(record, samples) if metric.launch is not None else None


def suite() -> Suite:
    """The launches of the study."""
    return load_suite(ROOT / "tools" / "aa_study")


def kinds(study: Suite) -> list[Kind]:
    """Every kind, in the order of suite.yaml."""
    result: list[Kind] = []
    for case in study.experiment(EXPERIMENT).size(SIZE).cases:
        if case.arm != ARMS[0]:
            continue
        if isinstance(case, CollectiveCase):
            result += [Kind(case, "collective_latency", nbytes) for nbytes in case.sizes]
        else:
            result.append(Kind(case, "throughput"))
    return result
