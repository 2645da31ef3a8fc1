"""Families of locality-sensitive hash functions: K functions give the bucket of each of L tables (section 3.2 and
appendix A of the paper; families as in the authors' code)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit

BIN = 8
"""Coordinates that compete for a code of WTA, DWTA and minhash."""
CODE_BITS = 3
RANGE_BITS = 18
"""A table has at most 2^18 buckets, as in the authors' settings (RangePow); codes of more bits are hashed to them."""
MEMBERS = 30
"""Coordinates that minhash takes as the set: the largest."""
ATTEMPTS = 100
"""Bins that an empty bin asks before it takes the code of the next one that has a winner."""
ROWS = 8192
"""Rows that are hashed at once: their sums stay in the cache."""
KINDS = {"wta": 0, "dwta": 1, "minhash": 2}
EMPTY = -1


class Family(Protocol):
    """What tables need of a family of hash functions."""

    buckets: int

    def codes(self, rows: np.ndarray) -> np.ndarray:
        """The bucket of each row in each table: (tables, rows), int32."""


@dataclass
class SimHash:
    """Signs of projections on vectors in {+1, 0, -1} of which a third is not 0. Two vectors at angle a agree in a bit
    with probability 1 - a / pi."""

    dimensions: int
    bits: int
    tables: int
    seed: int

    def __post_init__(self) -> None:
        drawn = np.random.default_rng([self.seed, 3]).integers(0, 6, (self.dimensions, self.bits * self.tables))
        self.projections = (drawn == 0).astype(np.float32) - (drawn == 1).astype(np.float32)
        self.buckets = 1 << self.bits

    def codes(self, rows: np.ndarray) -> np.ndarray:
        """See Family. The sums are one product of matrices: sparse vectors have no cheaper one in BLAS."""
        made = np.empty((self.tables, len(rows)), np.int32)
        for first in range(0, len(rows), ROWS):
            part = rows[first : first + ROWS]
            _pack(part @ self.projections, self.bits, made[:, first : first + len(part)])
        return made


@njit(cache=True, nogil=True)
def _pack(sums: np.ndarray, bits: int, into: np.ndarray) -> None:
    for row in range(len(sums)):
        for table in range(len(into)):
            code = 0
            for bit in range(table * bits, (table + 1) * bits):
                code = (code << 1) | (0 if sums[row, bit] >= 0 else 1)
            into[table, row] = code


@dataclass
class WinnerHash:
    """WTA, DWTA and minhash: coordinates are dealt into bins of eight, and the code of a bin is the place of its
    winner. WTA: the largest of all; DWTA: the largest of those that are not 0; minhash: the first of the set of the
    largest coordinates. A bin without a candidate borrows the code of another (densification). `shift`: bits by which
    the codes of a table lie apart; the authors' code has floor(ln 8) = 2 in place of log2 8 = 3."""

    kind: str
    dimensions: int
    bits: int
    tables: int
    seed: int
    shift: int = CODE_BITS

    def __post_init__(self) -> None:
        bins = self.dimensions // BIN
        deals = -(-self.bits * self.tables // bins)
        generator = np.random.default_rng([self.seed, 4])
        self.places = np.stack([generator.permutation(self.dimensions) for _ in range(deals)]).astype(np.int32)
        self.probe = np.uint64(generator.integers(1, 2**62) * 2 + 1)
        self.buckets = 1 << min(CODE_BITS * self.bits, RANGE_BITS)

    def codes(self, rows: np.ndarray) -> np.ndarray:
        """See Family."""
        made = np.empty((self.tables, len(rows)), np.int32)
        _winners(np.ascontiguousarray(rows), KINDS[self.kind], self.places, self.probe, self.bits, self.shift, made)
        return made


@njit(cache=True, nogil=True)
def _set_of_largest(row: np.ndarray, members: int) -> float:
    """The least value of the largest `members` coordinates that are above 0."""
    return max(np.sort(row)[-min(members, len(row))], np.finfo(np.float32).tiny)


@njit(cache=True, nogil=True)
def bin_winners(row: np.ndarray, kind: int, places: np.ndarray, winners: np.ndarray) -> None:
    """The place of the winner of each bin, EMPTY where a bin has no candidate."""
    bins = len(row) // BIN
    best = np.empty(len(winners), np.float32)
    winners[:] = EMPTY
    least = _set_of_largest(row, MEMBERS) if kind == 2 else 0.0
    for coordinate in range(bins * BIN if kind == 0 else len(row)):
        value = row[coordinate]
        if (kind == 1 and value == 0) or (kind == 2 and value < least):
            continue
        for deal in range(len(places)):
            place = places[deal, coordinate]
            number = deal * bins + place // BIN
            if place >= bins * BIN or number >= len(winners):
                continue
            score = np.float32(-(place % BIN)) if kind == 2 else value
            if winners[number] == EMPTY or score > best[number]:
                winners[number], best[number] = place % BIN, score


@njit(cache=True, nogil=True)
def densify(winners: np.ndarray, probe: np.uint64, dense: np.ndarray) -> None:
    """Each empty bin takes the code of the first bin with a winner that its probes meet, else of the next one; probes
    depend on the bin and the attempt alone, so that equal vectors borrow alike. Of a vector of zeros all codes are
    0."""
    count = np.uint64(len(winners))
    for number in range(len(winners)):
        code = winners[number]
        for attempt in range(1, ATTEMPTS + 1):
            if code != EMPTY:
                break
            mixed = (np.uint64(number) * np.uint64(ATTEMPTS + 1) + np.uint64(attempt)) * probe
            code = winners[((mixed >> np.uint64(20)) ^ (mixed >> np.uint64(41))) % count]
        for further in range(len(winners)):
            if code != EMPTY:
                break
            code = winners[(number + further) % len(winners)]
        dense[number] = max(code, 0)


@njit(cache=True, nogil=True)
def _winners(
    rows: np.ndarray, kind: int, places: np.ndarray, probe: np.uint64, bits: int, shift: int, into: np.ndarray
) -> None:
    tables = len(into)
    winners, dense = np.empty(tables * bits, np.int32), np.empty(tables * bits, np.int32)
    for row in range(len(rows)):
        bin_winners(rows[row], kind, places, winners)
        densify(winners, probe, dense)
        for table in range(tables):
            number = joined(dense[table * bits : (table + 1) * bits], shift)
            if bits * CODE_BITS > RANGE_BITS:  # a product's high bits: equal codes stay equal
                number = np.int64((np.uint64(number) * probe) >> np.uint64(64 - RANGE_BITS))
            into[table, row] = number


@njit(cache=True, nogil=True)
def joined(codes: np.ndarray, shift: int) -> int:
    """One number of the codes of a table. With a shift below 3 bits codes overlap, as in `LSH::hashesToIndex`."""
    number = 0
    for code in codes:
        number = (number << shift) + code
    return number


def family(name: str, dimensions: int, bits: int, tables: int, seed: int, shift: int = CODE_BITS) -> Family:
    """The family of this name: simhash, wta, dwta or minhash."""
    if name == "simhash":
        return SimHash(dimensions, bits, tables, seed)
    return WinnerHash(name, dimensions, bits, tables, seed, shift)
