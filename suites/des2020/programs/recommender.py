"""The models: logits from the sums of partial results, with dense layers of their own in torch (LR; FM, Rendle 2010;
Wide & Deep, Cheng et al. 2016; DeepFM, Guo et al. 2017; DCN, Wang et al. 2017)."""

from __future__ import annotations

import numpy as np
import torch
from suite_programs.shards import Form
from torch import nn

HIDDEN = 32
"""Features of each dense layer."""
FORMS = {
    "lr": (True, False, False),
    "fm": (True, True, False),
    "wide_deep": (True, False, True),
    "deepfm": (True, True, True),
    "dcn": (False, False, True),
}
"""What each model takes from its tables: linear, pairs, pooled."""


def form_of(model: str, k: int, fields: int) -> Form:
    """ValueError names the models."""
    if model not in FORMS:
        raise ValueError(f"unknown model {model!r}; known: {', '.join(FORMS)}")
    linear, pairs, pooled = FORMS[model]
    return Form(linear, pairs, pooled, k if pairs or pooled else 0, fields)


class Dense:
    """What follows the tables, the same on every worker. `parameters` are flat, float32 (n,), and so is `gradient`."""

    def __init__(self, model: str, form: Form, seed: int) -> None:
        self._model, self._form = model, form
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        width = form.fields * form.k
        self._bias = nn.Parameter(torch.zeros(1))
        self._deep = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1)) if form.pooled else None
        self._cross = nn.Linear(width, 1) if model == "dcn" else None
        self._join = nn.Linear(width, 1) if model == "dcn" else None
        modules = [each for each in (self._deep, self._cross, self._join) if each is not None]
        self._parameters = [self._bias, *(one for module in modules for one in module.parameters())]
        self.parameters = nn.utils.parameters_to_vector(self._parameters).detach().numpy().copy()
        self.gradient = np.zeros_like(self.parameters)

    def loss(self, partial: np.ndarray, labels: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
        """Sum of the samples' losses, and the gradient of `partial` times `scale`; that of the parameters goes into
        `gradient`."""
        nn.utils.vector_to_parameters(torch.from_numpy(self.parameters), self._parameters)
        inputs = torch.from_numpy(partial).requires_grad_(True)
        logits = self._logits(inputs)
        total = nn.functional.binary_cross_entropy_with_logits(logits, torch.from_numpy(labels), reduction="sum")
        found = torch.autograd.grad(total * scale, [inputs, *self._parameters], allow_unused=True)
        flat = [
            torch.zeros_like(parameter) if gradient is None else gradient
            for parameter, gradient in zip(self._parameters, found[1:], strict=True)
        ]
        self.gradient[:] = nn.utils.parameters_to_vector(flat).numpy()
        return total.item(), found[0].numpy()

    def scores(self, partial: np.ndarray) -> np.ndarray:
        """Logits."""
        nn.utils.vector_to_parameters(torch.from_numpy(self.parameters), self._parameters)
        with torch.inference_mode():
            return self._logits(torch.from_numpy(partial)).numpy()

    def _logits(self, partial: torch.Tensor) -> torch.Tensor:
        form, at = self._form, 0
        logits = self._bias.expand(len(partial))
        if form.linear:
            logits, at = logits + partial[:, 0], 1
        if form.pairs:
            sums, square = partial[:, at : at + form.k], partial[:, at + form.k]
            logits, at = logits + ((sums**2).sum(dim=1) - square) / 2, at + form.k + 1
        if not form.pooled:
            return logits
        pooled = partial[:, at:]
        assert self._deep is not None
        logits = logits + self._deep(pooled)[:, 0]
        if self._cross is not None and self._join is not None:
            crossed = pooled * self._cross(pooled) + pooled
            logits = logits + self._join(crossed)[:, 0]
        return logits


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Area under the ROC curve: how often a click has a higher score than none, by ranks (ties count half)."""
    from scipy.stats import rankdata

    clicks = labels > 0.5
    count, others = int(clicks.sum()), int((~clicks).sum())
    if not count or not others:
        return float("nan")
    return float((rankdata(scores)[clicks].sum() - count * (count + 1) / 2) / (count * others))
