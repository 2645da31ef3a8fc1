"""The descriptor of a data set: which networks it fits, how many rows it has, and the error that nobody can beat. It
stands in the data set's own file in datasets/, with the rows, their generator and their checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from scaleproof.spec.plugins import DatasetPlugin
from scaleproof.workloads.inputs.findings import Finding
from scaleproof.workloads.networks import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Inputs and labels that a network must have for a data set, and the number of rows."""

    # values of one sample
    inputs: int
    # inputs are tokens below this; None: float32
    vocabulary: int | None = None
    classes: int
    # of the labels of one sample; (): one label
    label_shape: tuple[int, ...] = ()
    # rows
    training: int
    test: int

    def fit(self, network: Network) -> bool:
        """Whether a network takes these inputs and labels."""
        taken = (prod(network.input_shape), network.vocabulary, network.classes, network.label_shape)
        return taken == (self.inputs, self.vocabulary, self.classes, self.label_shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class BayesError:
    """The smallest share of wrong labels that a classifier can have on new rows, which even the one that knows the
    generator has."""

    value: float
    # 95 % interval of the value; the value itself where it is exact
    low: float
    high: float
    # how it is known
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset(DatasetPlugin):
    """One data set. `implementation` makes one rank's data: a class as data.py's Source."""

    # None: random tensors in the shape of any network
    rows: Rows | None = None
    # None: not known
    bayes: BayesError | None = None
    # a check of the file before it is read; None: there is no file
    check_file: Callable[[], Finding] | None = None
