"""`python -m tools.learning_curves [DATA ...]`: accuracy over steps on harder tasks, the tables of docs/workloads.md.

Every network has the same budget: each learning rate of RATES, every seed; the rate with the best mean accuracy at the
end is shown."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from scaleproof.spec import registry
from scaleproof.workloads.data import REFERENCE_ROWS, Batch, initial_parameters
from scaleproof.workloads.dataset import Dataset
from scaleproof.workloads.layers import Linear
from scaleproof.workloads.networks import Network, build
from scaleproof.workloads.stacked import stacked_model
from scaleproof.workloads.stacked_contract import flat, momentum_step

DATA = ("noisy_teacher", "gaussian_mixture")
RATES = (0.01, 0.02, 0.05, 0.1, 0.2)
MOMENTUM, MINIBATCH = 0.9, 64
SHOWN = (50, 100, 200, 400, 800, 1600)
"""Steps after which the accuracy is shown."""
OTHERS, OTHERS_SHOWN = ("vgg_digits", "bn_digits"), (100, 200, 400)
SUBSETS = (2048, 8192)
"""Training rows, in place of all of them."""
MANY_SEEDS, FEW_SEEDS = range(6), range(3)


@dataclass(frozen=True, slots=True)
class Curve:
    """Test accuracy (seeds, steps shown) at the chosen learning rate."""

    rate: float
    accuracies: np.ndarray

    def text(self) -> str:
        """Mean and range over the seeds at each number of steps."""
        columns = [f"{column.mean():.2f} ({column.min():.2f} to {column.max():.2f})" for column in self.accuracies.T]
        return " | ".join(columns)


def linear_model() -> Network:
    """Softmax regression."""
    return build("linear", (64,), (Linear("out", 10, classifier=True),), 1.0)


def curve(network: Network, dataset: Dataset, shown: Sequence[int], seeds: Sequence[int], rows: int = 0) -> Curve:
    """The best rate's curve; `rows`: training rows, 0: all."""
    curves = [Curve(rate, _trained(network, dataset, shown, seeds, rate, rows)) for rate in RATES]
    return max(curves, key=lambda each: float(each.accuracies[:, -1].mean()))


def _trained(
    network: Network, dataset: Dataset, shown: Sequence[int], seeds: Sequence[int], rate: float, rows: int
) -> np.ndarray:
    """All seeds as replicas of one model, each on its own rows."""
    model = stacked_model(network, "torch")
    data = [dataset.load()(network, MINIBATCH, seed, 0, 1) for seed in seeds]
    trains = [Batch(each.train.inputs[: rows or None], each.train.labels[: rows or None]) for each in data]
    values = np.stack([flat(initial_parameters(network, seed)) for seed in seeds])
    velocity, gradients = np.zeros_like(values), np.empty_like(values)
    generator, accuracies = np.random.default_rng(0), list[list[float]]()
    for step in range(1, shown[-1] + 1):
        chosen = generator.integers(len(trains[0].labels), size=(len(seeds), MINIBATCH))
        batches = [Batch(train.inputs[mine], train.labels[mine]) for train, mine in zip(trains, chosen, strict=True)]
        model.gradients(values, batches, gradients)
        momentum_step(values, velocity, gradients, rate, MOMENTUM)
        if step in shown:
            references = [Batch(train.inputs[:REFERENCE_ROWS], train.labels[:REFERENCE_ROWS]) for train in trains]
            accuracies.append(
                [
                    model.accuracy(row, each.test, reference)
                    for row, each, reference in zip(values, data, references, strict=True)
                ]
            )
    return np.array(accuracies).T


def report(name: str) -> None:
    """Prints the curves of one data set."""
    dataset = registry.get("dataset", name)
    assert isinstance(dataset, Dataset)
    for title, each in _curves(dataset):
        print(f"| `{name}` | {title} | {each.rate:g} | {each.text()} |", flush=True)


def _curves(dataset: Dataset) -> Iterator[tuple[str, Curve]]:
    dense: Network = registry.load("workload", "dnn_digits")(None, 1.0)
    yield "linear model", curve(linear_model(), dataset, SHOWN, FEW_SEEDS)
    yield "`dnn_digits`", curve(dense, dataset, SHOWN, MANY_SEEDS)
    for rows in SUBSETS:
        yield f"`dnn_digits`, {rows} rows", curve(dense, dataset, SHOWN, FEW_SEEDS, rows)
    for other in OTHERS:
        network: Network = registry.load("workload", other)(None, 1.0)
        yield f"`{other}`", curve(network, dataset, OTHERS_SHOWN, FEW_SEEDS)


if __name__ == "__main__":
    for chosen_name in sys.argv[1:] or DATA:
        report(chosen_name)
