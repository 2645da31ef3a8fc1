"""The baselines: the same network in torch, with the softmax over all labels or over a sample of them. Sparse input
layer (EmbeddingBag, SparseAdam), fused Adam for what is dense, BLAS on every thread."""

from __future__ import annotations

import numpy as np
import torch
from suite_programs.slide_network import Batch, Weights
from torch.nn import functional

from scaleproof.frameworks.torch.adam import Adam, SparseAdam

BETAS, EPSILON = (0.9, 0.999), 1e-8


class TorchNetwork:
    """Full softmax, or sampled softmax over `classes` different labels that each step draws evenly for its whole batch,
    beside the labels of each sample (Jean et al., 2015). An even draw needs no correction of logits."""

    def __init__(self, weights: Weights, classes: int, rate: float, threads: int, seed: int) -> None:
        torch.set_num_threads(threads)
        self.classes, self.active, self.changed_rows = classes, 0, 0
        self._generator = np.random.default_rng([seed, 11])

        def parameter(of: np.ndarray) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.from_numpy(of.copy()))

        self.first, self.first_bias = parameter(weights.first), parameter(weights.first_bias)
        self.output, self.output_bias = parameter(weights.output), parameter(weights.output_bias[:, None])
        sparse, dense = [self.first], [self.first_bias]
        (sparse if classes else dense).extend([self.output, self.output_bias])
        self._optimizers = SparseAdam(sparse, rate, BETAS, EPSILON), Adam(dense, rate, BETAS, EPSILON)

    def rebuild(self) -> None:
        """There are no tables."""

    def step(self, batch: Batch, rate: float) -> float:
        """One step of Adam. Returns the mean loss."""
        hidden, labels = self.hidden(batch), torch.from_numpy(batch.labels).long()
        count = len(self.output)
        drawn = self._generator.choice(count, self.classes, replace=False, shuffle=False) if self.classes else None
        loss = self._full(hidden, labels) if drawn is None else self._sampled(hidden, labels, torch.from_numpy(drawn))
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in self._optimizers:
            optimizer.step()
        self.active += len(labels) * (self.classes + 1 if self.classes else count)
        known = batch.labels[batch.labels >= 0]
        self.changed_rows += count if drawn is None else len(np.union1d(drawn, known))
        return float(loss.detach())

    def hidden(self, batch: Batch) -> torch.Tensor:
        """Activations of the hidden layer, (rows, units)."""
        each = np.repeat(batch.values, np.diff(batch.starts))
        bags = functional.embedding_bag(
            torch.from_numpy(batch.indices).long(),
            self.first,
            torch.from_numpy(batch.starts[:-1]),
            mode="sum",
            sparse=True,
            per_sample_weights=torch.from_numpy(each),
        )
        return functional.relu(bags + self.first_bias)

    def _full(self, hidden: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = functional.linear(hidden, self.output, self.output_bias[:, 0])
        first = functional.cross_entropy(logits, labels[:, 0], reduction="none")
        if not bool((labels[:, 1] >= 0).any()):
            return first.mean()
        second = functional.cross_entropy(logits, labels[:, 1], reduction="none", ignore_index=-1)
        return torch.where(labels[:, 1] >= 0, (first + second) / 2, first).mean()

    def _sampled(self, hidden: torch.Tensor, labels: torch.Tensor, drawn: torch.Tensor) -> torch.Tensor:
        others = hidden @ functional.embedding(drawn, self.output, sparse=True).T
        others = others + functional.embedding(drawn, self.output_bias, sparse=True)[:, 0]
        hit = (drawn[None] == labels[:, :1]) | (drawn[None] == labels[:, 1:])
        others = others.masked_fill(hit, -torch.inf)
        known = torch.where(labels < 0, labels[:, :1], labels)  # no row gets a gradient of 0 that no label asks for
        own = (functional.embedding(known, self.output, sparse=True) * hidden[:, None]).sum(2)
        own = own + functional.embedding(known, self.output_bias, sparse=True)[:, :, 0]
        own = own.masked_fill(labels < 0, -torch.inf)
        norm = torch.logsumexp(torch.cat([own, others], 1), 1)
        mean = own.masked_fill(labels < 0, 0).sum(1) / (labels >= 0).sum(1)
        return (norm - mean).mean()

    def weights(self) -> Weights:
        """Those of now."""
        arrays = (self.first, self.first_bias, self.output, self.output_bias[:, 0])
        return Weights(*(each.detach().numpy() for each in arrays))

    def close(self) -> None:
        """There are no threads of its own."""
