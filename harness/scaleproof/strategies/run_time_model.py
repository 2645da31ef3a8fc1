"""A state-space model of the run-times of all workers, with amortised inference (teng2018; Krishnan et al., Structured
inference networks for nonlinear state space models, 2017), in torch on the CPU.

A state z_t moves by p(z_t | z_{t-1}) and gives the run-times x_t of all workers by p(x_t | z_t), both normal with
means and diagonal variances from small networks. A recurrent network reads the last steps and gives q(z_t | x_{..t}).
All are trained together on windows of a recorded run, by the evidence lower bound and the density of the next step."""

from __future__ import annotations

import copy
import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor, nn

from scaleproof.frameworks.torch.adam import Adam

LATENT, HIDDEN = 32, 64
"""Elements of a state, and of each network's hidden layer."""
UPDATES, BATCH, STEP_SIZE, DRAWS = 400, 16, 3e-3, 4
"""Of the training: updates by Adam, windows of each, its learning rate, and draws of the step after each step."""
HELD_BACK, LOOK_EVERY, LOOK_DRAWS = 5, 25, 16
"""One step in so many, the last ones, is not trained on; after so many updates the model predicts these, by so many
draws of each."""
LEAST_LOG, MOST_LOG = -8.0, 4.0
"""Bounds of logarithms of variances."""
SCALE = "mean and deviation"
"""Name of the array of both in a model's file, s."""


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

    def repeated(self, count: int) -> Normals:
        """The same so many times, along a new first axis."""
        return Normals(self.mean.expand(count, *self.mean.shape), self.log_variance.expand(count, *self.mean.shape))

    def log_densities(self, value: Tensor) -> Tensor:
        """Of each element."""
        square = (value - self.mean) ** 2 / self.log_variance.exp()
        return -0.5 * (square + self.log_variance + math.log(2 * math.pi))

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

    def objective(self, windows: Tensor) -> Tensor:
        """Of windows, per step: the evidence lower bound, in which the first state of a window is standard normal, and
        the logarithm of the density of the next step's times under draws of p(z_t | z_{t-1}). Without it draws that lie
        between two states of a host are given times that no worker has."""
        inferred = self.states(windows)
        drawn = inferred.drawn()
        moved, first = self.next_states(drawn[:, :-1]), torch.zeros_like(drawn[:, :1])
        before = Normals(torch.cat([first, moved.mean], dim=1), torch.cat([first, moved.log_variance], dim=1))
        bound = self.times(drawn).log_densities(windows).sum(-1) - inferred.divergence(before)
        ahead = self.times(moved.repeated(DRAWS).drawn()).log_densities(windows[:, 1:]).sum(-1)
        return bound.mean() + (ahead.logsumexp(0) - math.log(DRAWS)).mean()

    @torch.no_grad()
    def prediction(self, times: Tensor, window: int) -> float:
        """Mean logarithm of the density of a run-time after each window of (steps, workers)."""
        windows = torch.stack([times[start : start + window] for start in range(len(times) - window)])
        last = self.states(windows)
        drawn = Normals(last.mean[:, -1], last.log_variance[:, -1]).repeated(LOOK_DRAWS).drawn()
        next_times = self.times(self.next_states(drawn).drawn())
        densities = next_times.log_densities(times[window:])
        return float((densities.logsumexp(0) - math.log(LOOK_DRAWS)).mean())


@dataclass(frozen=True, slots=True)
class Expected:
    """Draws of the next step's run-times before their noise: means and standard deviations, (draws, workers)."""

    mean: np.ndarray
    deviation: np.ndarray


class RunTimeModel:
    """A trained model; training leaves torch's own draws and threads as they were."""

    def __init__(self, recorded: np.ndarray, window: int, seed: int) -> None:
        """Trains on run-times (steps, workers) of a synchronous run, in windows of so many steps."""
        self._mean, self._deviation = (
            float(recorded.mean()),
            max(float(recorded.std()), 1e-3 * float(recorded.mean()), 1e-9),
        )
        with _own_draws(seed):
            self._networks = RunTimeNetworks(recorded.shape[1])
            self._train(torch.from_numpy(self._standard(recorded)), window)

    def save(self, path: Path) -> None:
        """Writes the model atomically, as arrays of numpy."""
        arrays: dict[str, Any] = {name: tensor.numpy() for name, tensor in self._networks.state_dict().items()}
        arrays[SCALE] = np.array([self._mean, self._deviation])
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:  # in namespaces processes have equal numbers
            np.savez(draft := Path(folder) / path.name, **arrays)
            draft.rename(path)

    @classmethod
    def load(cls, path: Path, workers: int) -> RunTimeModel | None:
        """What `save` wrote of a model of so many workers; None where there is no such file, or no whole one."""
        model = cls.__new__(cls)
        try:
            with np.load(path, allow_pickle=False) as arrays:
                model._mean, model._deviation = map(float, arrays[SCALE])
                state = {name: torch.from_numpy(arrays[name]) for name in arrays.files if name != SCALE}
            with _own_draws(0):
                model._networks = RunTimeNetworks(workers)
            model._networks.load_state_dict(state)
        except (OSError, EOFError, KeyError, ValueError, RuntimeError, BadZipFile):
            return None
        return model

    @torch.no_grad()
    def expected(self, history: np.ndarray, random: np.random.Generator, draws: int) -> Expected:
        """Of the step after a history (steps, workers)."""
        noise = torch.from_numpy(random.standard_normal((2, draws, LATENT)).astype(np.float32))
        last = self._networks.states(torch.from_numpy(self._standard(history))[None])
        state = last.mean[0, -1] + last.deviation[0, -1] * noise[0]
        moved = self._networks.next_states(state)
        times = self._networks.times(moved.mean + moved.deviation * noise[1])
        mean, deviation = times.mean.numpy().astype(float), times.deviation.numpy().astype(float)
        return Expected(self._mean + self._deviation * mean, self._deviation * deviation)

    def _standard(self, times: np.ndarray) -> np.ndarray:
        standard: np.ndarray = ((times - self._mean) / self._deviation).astype(np.float32)
        return standard

    def _train(self, times: Tensor, window: int) -> None:
        """Of the updates, the one after which steps that were held back are predicted best."""
        held_back = len(times) // HELD_BACK if len(times) >= HELD_BACK * window else 0
        trained = times[: len(times) - held_back]
        starts = len(trained) - min(window, len(trained)) + 1
        optimiser = Adam(self._networks.parameters(), STEP_SIZE)
        best, kept = -math.inf, self._networks.state_dict()
        for update in range(UPDATES):
            chosen = torch.randint(starts, (BATCH,)).tolist()
            windows = torch.stack([trained[start : start + window] for start in chosen])
            optimiser.zero_grad()
            (-self._networks.objective(windows)).backward()
            optimiser.step()
            if held_back and (update + 1) % LOOK_EVERY == 0:
                score = self._networks.prediction(times[-held_back - window :], window)
                if score > best:
                    best, kept = score, copy.deepcopy(self._networks.state_dict())
        if held_back:
            self._networks.load_state_dict(kept)


@contextmanager
def _own_draws(seed: int) -> Iterator[None]:
    """One thread, and draws from a seed."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.set_num_threads(1)
        torch.default_generator.manual_seed(seed)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
