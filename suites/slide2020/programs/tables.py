"""Hash tables of neurons: L tables of buckets with room for a fixed number of neurons, first-in-first-out or as a
reservoir (section 3.2.1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from suite_programs.hashing import Family
from suite_programs.memory import Allocate
from suite_programs.random_numbers import below

POLICIES = {"fifo": 0, "reservoir": 1}


@njit(cache=True, nogil=True)
def _insert(
    neurons: np.ndarray, counts: np.ndarray, codes: np.ndarray, policy: int, first: int, last: int, seed: int
) -> None:
    """Inserts all neurons into tables `first` to `last` - 1, in the order of their numbers."""
    room = neurons.shape[2]
    state = np.array([seed * 2 + 1], np.uint64)
    for table in range(first, last):
        for neuron in range(codes.shape[1]):
            bucket = codes[table, neuron]
            count = counts[table, bucket]
            counts[table, bucket] = count + 1
            place = count
            if count >= room:
                # Vitter's reservoir: kept with probability room / (count + 1)
                place = count % room if policy == 0 else below(state, count + 1)
            if place < room:
                neurons[table, bucket, place] = neuron


@njit(cache=True, nogil=True)
def held(neurons: np.ndarray, counts: np.ndarray, codes: np.ndarray, alias: np.ndarray) -> np.ndarray:
    """Which neurons the buckets of each query hold, under the names of `alias`: (queries, neurons), bool. `codes`:
    (tables, queries)."""
    found = np.zeros((codes.shape[1], len(alias)), np.bool_)
    for table in range(len(codes)):
        for query in range(codes.shape[1]):
            bucket = codes[table, query]
            for place in range(min(counts[table, bucket], neurons.shape[2])):
                found[query, alias[neurons[table, bucket, place]]] = True
    return found


class Tables:
    """`neurons`: (tables, buckets, room), int32; `counts`: neurons that were inserted into each bucket, also beyond its
    room."""

    def __init__(self, tables: int, buckets: int, room: int, policy: str, allocate: Allocate) -> None:
        self.neurons = allocate((tables, buckets, room), np.int32)
        self.counts = allocate((tables, buckets), np.int32)
        self.policy = POLICIES[policy]

    def insert(self, codes: np.ndarray, pool: ThreadPoolExecutor, threads: int, seed: int) -> None:
        """Empties the tables and inserts every neuron by its codes, (tables, neurons). Each thread has its tables."""
        self.counts[:] = 0
        bounds = np.linspace(0, len(codes), threads + 1).astype(int)
        run_all(
            pool,
            lambda part: _insert(
                self.neurons, self.counts, codes, self.policy, bounds[part], bounds[part + 1], seed + part
            ),
            threads,
        )

    def rebuild(self, family: Family, rows: np.ndarray, pool: ThreadPoolExecutor, threads: int, seed: int) -> None:
        """Hashes all rows and inserts them."""
        parts = np.array_split(np.arange(len(rows)), threads)
        codes: list[Any] = [None] * threads

        def hash_part(part: int) -> None:
            codes[part] = family.codes(rows[parts[part][0] : parts[part][-1] + 1])

        run_all(pool, hash_part, threads)
        self.insert(np.concatenate(codes, axis=1), pool, threads, seed)


def run_all(pool: ThreadPoolExecutor, work: Callable[[int], None], threads: int) -> None:
    """Calls `work` with 0 to threads - 1, one of them in this thread."""
    others = [pool.submit(work, part) for part in range(1, threads)]
    work(0)
    for each in others:
        each.result()
