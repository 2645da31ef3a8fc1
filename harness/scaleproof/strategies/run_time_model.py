"""A state-space model of the run-times of all workers, with amortised inference (teng2018; Krishnan et al., Structured
inference networks for nonlinear state space models, 2017), in torch on the CPU.

A state z_t moves by p(z_t | z_{t-1}) and gives the run-times x_t of all workers by p(x_t | z_t), both normal with
means and diagonal variances from small networks. A recurrent network reads the last steps and gives q(z_t | x_{..t}).
All are trained together, by the evidence lower bound of windows of a recorded run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

LATENT, HIDDEN = 16, 64
"""Elements of a state, and of each network's hidden layer."""
UPDATES, BATCH, STEP_SIZE = 500, 16, 5e-3
"""Of the training: updates by Adam, windows of each, and its learning rate."""
LEAST_LOG, MOST_LOG = -8.0, 4.0
"""Bounds of logarithms of variances."""


@dataclass(frozen=True, slots=True)
class Normals:
    """Independent normal values."""

    mean: Tensor
    log_variance: Tensor

    @classmethod
    def of(cls, both: Tensor) -> Normals:
        """From a network's output: means, then logarithms of variances."""
        mean, log_variance = both.chunk(2, dim=-1)
        return cls(mean, log_variance.clamp(LEAST_LOG, MOST_LOG))

    @property
    def deviation(self) -> Tensor:
        """Standard deviations."""
        return (self.log_variance / 2).exp()

    def drawn(self) -> Tensor:
        """One draw, through which gradients flow."""
        return self.mean + self.deviation * torch.randn_like(self.mean)

    def log_density(self, value: Tensor) -> Tensor:
        """Summed over the last axis."""
        square = (value - self.mean) ** 2 / self.log_variance.exp()
        return -0.5 * (square + self.log_variance + math.log(2 * math.pi)).sum(-1)

    def divergence(self, other: Normals) -> Tensor:
        """Kullback-Leibler divergence from `other`, summed over the last axis."""
        ratio = (self.log_variance - other.log_variance).exp()
        square = (self.mean - other.mean) ** 2 / other.log_variance.exp()
        return 0.5 * (ratio + square - 1 + other.log_variance - self.log_variance).sum(-1)


class RunTimeNetworks(nn.Module):
    """The networks of the model, on standardised run-times."""

    def __init__(self, workers: int) -> None:
        super().__init__()
        self.recurrent = nn.GRU(workers, HIDDEN, batch_first=True)
        self.posterior = nn.Linear(HIDDEN, 2 * LATENT)
        self.movement = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2 * LATENT))
        self.emission = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2 * workers))

    def states(self, times: Tensor) -> Normals:
        """q(z_t | x_{..t}) of windows (windows, steps, workers)."""
        return Normals.of(self.posterior(self.recurrent(times)[0]))

    def next_states(self, states: Tensor) -> Normals:
        """p(z_t | z_{t-1}): what a network adds to the state."""
        moved = Normals.of(self.movement(states))
        return Normals(states + moved.mean, moved.log_variance)

    def times(self, states: Tensor) -> Normals:
        """p(x_t | z_t)."""
        return Normals.of(self.emission(states))

    def lower_bound(self, windows: Tensor) -> Tensor:
        """Evidence lower bound of windows, per step. The first state of a window is standard normal."""
        inferred = self.states(windows)
        drawn = inferred.drawn()
        moved = self.next_states(drawn[:, :-1])
        first = Normals(torch.zeros_like(drawn[:, :1]), torch.zeros_like(drawn[:, :1]))
        before = Normals(
            torch.cat([first.mean, moved.mean], dim=1), torch.cat([first.log_variance, moved.log_variance], dim=1)
        )
        return (self.times(drawn).log_density(windows) - inferred.divergence(before)).mean()


@dataclass(frozen=True, slots=True)
class Expected:
    """Draws of the next step's run-times before their noise: means and standard deviations, (draws, workers)."""

    mean: np.ndarray
    deviation: np.ndarray


class RunTimeModel:
    """A trained model. It never changes torch's own generator."""

    def __init__(self, recorded: np.ndarray, window: int, seed: int) -> None:
        """Trains on run-times (steps, workers) of a synchronous run, in windows of so many steps."""
        self._mean, self._deviation = float(recorded.mean()), float(recorded.std()) or 1.0
        with _own_draws(seed):
            self._networks = RunTimeNetworks(recorded.shape[1])
            self._state = torch.get_rng_state()
            self._train(torch.from_numpy(self._standard(recorded)), window)
            self._state = torch.get_rng_state()

    def expected(self, history: np.ndarray, draws: int) -> Expected:
        """Of the step after a history (steps, workers)."""
        window = torch.from_numpy(self._standard(history))[None]
        with torch.inference_mode(), _own_draws(self._state):
            last = self._networks.states(window)
            state = Normals(last.mean[0, -1].expand(draws, -1), last.log_variance[0, -1].expand(draws, -1))
            times = self._networks.times(self._networks.next_states(state.drawn()).drawn())
            self._state = torch.get_rng_state()
        mean, deviation = times.mean.numpy().astype(float), times.deviation.numpy().astype(float)
        return Expected(self._mean + self._deviation * mean, self._deviation * deviation)

    def _standard(self, times: np.ndarray) -> np.ndarray:
        standard: np.ndarray = ((times - self._mean) / self._deviation).astype(np.float32)
        return standard

    def _train(self, times: Tensor, window: int) -> None:
        starts = len(times) - min(window, len(times)) + 1
        optimiser = torch.optim.Adam(self._networks.parameters(), lr=STEP_SIZE)
        for _ in range(UPDATES):
            chosen = torch.randint(starts, (BATCH,)).tolist()
            windows = torch.stack([times[start : start + window] for start in chosen])
            optimiser.zero_grad()
            (-self._networks.lower_bound(windows)).backward()
            optimiser.step()


@contextmanager
def _own_draws(start: int | Tensor) -> Iterator[None]:
    """One thread, and draws from a seed or from where earlier ones ended; torch's own state is as before after it."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        try:
            if isinstance(start, int):
                torch.default_generator.manual_seed(start)
            else:
                torch.set_rng_state(start)
            yield
        finally:
            torch.set_num_threads(threads)
