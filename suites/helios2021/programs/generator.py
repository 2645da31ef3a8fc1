"""Generates jobs of a cluster from published marginals, from a seed.

Published: the distributions of duration and of GPUs (Figs. 5a and 6a), and which share of GPU time jobs of each number
of GPUs have (Fig. 6b). Stated by us: jobs repeat templates (Zipf), a template fixes user, VC and GPUs and goes with the
duration (Gaussian copula), arrivals have a daily rhythm, VCs have sizes by Zipf's law.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from suite_programs.jobs import Jobs, Pools, sorted_jobs

from scaleproof.spec.errors import SpecError

MARGINALS = Path(__file__).with_name("marginals.csv")
"""Percent: cluster, quantity, at, percent; cumulative but for statuses (0 completed, 1 cancelled, 2 failed). Equal to
published.yaml's rows (a test compares them)."""
ZIPF, ZIPF_OF_VCS = 0.8, 0.8
CORRELATION = 0.8
"""Of template and duration in the copula."""
JOBS_OF_TEMPLATE, TEMPLATES_OF_USER = 35, 10
SWING, DAY_S = 0.35, 86_400.0
LARGEST = 128
"""GPUs of a job that the figure has at `more than 64`: 16 whole nodes; ours (the Venus slice has jobs of up to 144)."""
SAMPLE = 40_000
"""Jobs on which the dependence of duration on GPUs is fitted."""
ROUNDS, STEP, FURTHEST = 30, 0.3, 4.0
"""Of that fit; in standard deviations of a score."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster to generate. `load`: GPU seconds of all jobs over those of the cluster in the time of submissions;
    `equal_s`: all jobs last so long, `equal_gpus`: all have so many GPUs (0: as published)."""

    cluster: str
    jobs: int
    nodes: int
    vcs: int
    load: float
    equal_s: float = 0.0
    equal_gpus: int = 0


@lru_cache(maxsize=1)
def marginals() -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Of each cluster and quantity (duration, gpus, gpu_time, cpu_duration): where, and the cumulative share there."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for line in MARGINALS.read_text().splitlines()[1:]:
        cluster, quantity, at, percent = line.split(",")
        found.setdefault((cluster, quantity), []).append((float(at), float(percent) / 100))
    return {
        key: (np.array([at for at, _ in rows]), np.array([share for _, share in rows])) for key, rows in found.items()
    }


def published(cluster: str, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """A marginal; SpecError where none was published."""
    known = marginals()
    if (cluster, quantity) not in known:
        names = sorted({name for name, _ in known})
        raise SpecError(f"options.cluster: {cluster!r} has no published {quantity}; known: {', '.join(names)}")
    return known[cluster, quantity]


def durations_at(cluster: str, shares: np.ndarray) -> np.ndarray:
    """Durations in s at cumulative shares (jobs,); between two published points the logarithm is even."""
    at, cumulative = published(cluster, "duration")
    cumulative = np.concatenate([[0.0], cumulative])
    logs = np.concatenate([[-1.0], np.log2(at)])
    return np.maximum(np.round(2.0 ** np.interp(shares, cumulative, logs)), 1.0)


def generate(shape: Shape, seed: int) -> Jobs:
    """Jobs of a cluster, in order of submission."""
    random = np.random.default_rng([2021, seed])
    pools = _pools(shape)
    templates = max(50, shape.jobs // JOBS_OF_TEMPLATE)
    weights = np.arange(1, templates + 1) ** -ZIPF
    weights /= weights.sum()
    gpus = _gpus_of_templates(shape, int(pools.nodes.max()) * pools.per_node, weights, random)
    if shape.equal_gpus:
        gpus = np.full_like(gpus, shape.equal_gpus)
    vc = _vcs_of_templates(pools, gpus, random)
    user = random.integers(0, max(2, templates // TEMPLATES_OF_USER), templates) * len(pools.nodes) + vc
    latent = random.standard_normal(templates)
    drawn = random.choice(templates, shape.jobs, p=weights)
    score = CORRELATION * latent[drawn] + np.sqrt(1 - CORRELATION**2) * random.standard_normal(shape.jobs)
    duration = _durations(shape, gpus[drawn], score)
    span = float((duration * gpus[drawn]).sum()) / (shape.load * pools.gpus)
    none = np.zeros(shape.jobs, np.int64)
    jobs = Jobs(
        f"generated {shape.cluster}", pools, _arrivals(shape.jobs, span, random), duration, gpus[drawn],
        vc[drawn].astype(np.int32), user[drawn].astype(np.int32), drawn.astype(np.int32), none,
    )  # fmt: skip
    return sorted_jobs(jobs)


def _pools(shape: Shape) -> Pools:
    """Sizes of VCs by Zipf's law, at least one node each."""
    if not 1 <= shape.vcs <= shape.nodes:
        raise SpecError(f"options.vcs: {shape.vcs} VCs do not fit on {shape.nodes} nodes")
    weights = np.arange(1, shape.vcs + 1) ** -ZIPF_OF_VCS
    nodes = 1 + np.floor((shape.nodes - shape.vcs) * weights / weights.sum()).astype(np.int64)
    nodes[0] += shape.nodes - nodes.sum()
    return Pools(tuple(f"vc{number:02d}" for number in range(shape.vcs)), nodes)


def _gpus_of_templates(shape: Shape, most: int, weights: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """GPUs of each template: drawn by what the published distribution still lacks, the heaviest templates first, so
    that jobs have the distribution and not only templates."""
    at, cumulative = published(shape.cluster, "gpus")
    sizes = np.where(np.isfinite(at), at, LARGEST).astype(np.int64)
    shares = np.diff(np.concatenate([[0.0], cumulative]))[sizes <= most]
    sizes = sizes[sizes <= most]
    lacking, found = shares / shares.sum(), np.empty(len(weights), np.int64)
    for template, weight in enumerate(weights):
        open_to = np.maximum(lacking - weight / 2, 0)
        if not open_to.any():
            open_to = np.maximum(lacking, 0) + 1e-12
        size = int(np.searchsorted(np.cumsum(open_to), random.random() * open_to.sum()))
        found[template] = sizes[size]
        lacking[size] -= weight
    return found


def _vcs_of_templates(pools: Pools, gpus: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A VC for each template, by size among those that have room for it."""
    cumulative = np.cumsum(pools.nodes[::-1])[::-1]
    fitting = np.array([(pools.nodes * pools.per_node >= size).sum() for size in gpus])  # sizes fall
    total = cumulative[0] - np.append(cumulative, 0)[fitting]
    place = random.random(len(gpus)) * total
    return np.searchsorted(np.cumsum(pools.nodes), place, side="right").astype(np.int64)


def _durations(shape: Shape, gpus: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Exactly the published distribution, in the order of the scores and of what GPUs add to them."""
    if shape.equal_s:
        return np.full(shape.jobs, shape.equal_s)
    sizes, kind = np.unique(gpus, return_inverse=True)
    offsets = _offsets(shape.cluster, sizes, kind[:SAMPLE], score[:SAMPLE])
    return _ranked(shape.cluster, score + offsets[kind])


def _ranked(cluster: str, score: np.ndarray) -> np.ndarray:
    shares = np.empty(len(score))
    shares[np.argsort(score, kind="stable")] = (np.arange(len(score)) + 0.5) / len(score)
    return durations_at(cluster, shares)


def _offsets(cluster: str, sizes: np.ndarray, kind: np.ndarray, score: np.ndarray) -> np.ndarray:
    """What each number of GPUs adds to a score (sizes,), so that it has its published share of GPU time: where a share
    is too small its jobs move up, in steps that get smaller the nearer it is."""
    at, cumulative = published(cluster, "gpu_time")
    at = np.where(np.isfinite(at), at, LARGEST)
    wanted = np.diff(np.concatenate([[0.0], cumulative]))[np.isin(at, sizes)]
    wanted = np.maximum(wanted, 1e-4) / np.maximum(wanted, 1e-4).sum()
    offsets = np.zeros(len(sizes))
    for _ in range(ROUNDS):
        time = _ranked(cluster, score + offsets[kind]) * sizes[kind]
        share = np.maximum(np.bincount(kind, weights=time, minlength=len(sizes)) / time.sum(), 1e-6)
        offsets = np.clip(offsets + STEP * np.log(wanted / share), -FURTHEST, FURTHEST)
    return offsets


def _arrivals(count: int, span: float, random: np.random.Generator) -> np.ndarray:
    """Times of submission in s: a Poisson process with a daily rhythm, given its number of jobs."""
    grid = np.linspace(0.0, span, 4096)
    turn = 2 * np.pi * grid / DAY_S
    cumulative = grid + SWING * DAY_S / (2 * np.pi) * (1 - np.cos(turn))
    return np.sort(np.interp(random.random(count) * cumulative[-1], cumulative, grid))
