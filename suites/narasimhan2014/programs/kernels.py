"""Hot loops of the solver as machine code: values of the RBF kernel exp(-width |x - z|^2) of CSR rows against rows that
are spread out over all features, and all that an iteration does with them. The types are stated, so that everything is
compiled, or loaded from its cache, when this file is imported: before ranks are forked and any clock runs."""

from __future__ import annotations

import math

import numpy as np

from scaleproof.simulate.compiled import typed

F8, I4, I8 = "f8[::1]", "i4[::1]", "i8[::1]"
EXTREMES = "Tuple((f8, i8, f8, i8))"
INSIDE, UPPER, LOWER = 0, 1, 2
"""Where a sample stands: 0 < alpha < C (I0), or at a bound, where it counts for beta_up alone (I1, I2) or for beta_low
alone (I3, I4). Index sets of Keerthi et al. 2001, as Narasimhan et al. 2014 have them."""
PLACE_BITS = 20
"""Lowest bits of gamma that no comparison looks at; messages have a sample's place in them."""
MAGNITUDE = (1 << 63) - 1


@typed(f"{F8}({I8}, {I4}, {F8})")
def squares_of(starts: np.ndarray, columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """|x|^2 of each row."""
    result = np.zeros(len(starts) - 1)
    for row in range(len(result)):
        total = 0.0
        for place in range(starts[row], starts[row + 1]):
            total += values[place] * values[place]
        result[row] = total
    return result


@typed("i8(f8, f8, f8)")
def side(label: float, alpha: float, limit: float) -> int:
    """INSIDE, UPPER or LOWER."""
    if 0.0 < alpha < limit:
        return INSIDE
    return UPPER if (label > 0.0) == (alpha <= 0.0) else LOWER


@typed("i8(f8)")
def coarse(value: float) -> int:
    """A whole number that is larger for larger values, and equal for those that agree to 32 bits of their fraction."""
    bits = np.float64(value).view(np.int64)
    ordered = bits if bits >= 0 else bits ^ MAGNITUDE
    return ordered >> PLACE_BITS


@typed(f"{EXTREMES}({F8}, {F8}, {F8}, f8, {I8}, i8)")
def extremes(
    gamma: np.ndarray, labels: np.ndarray, alpha: np.ndarray, limit: float, active: np.ndarray, count: int
) -> tuple[float, int, float, int]:
    """beta_up, its row, beta_low, its row, of the first `count` rows of `active`; the row is -1 where there is none. Of
    values that are `coarse`ly equal the first one counts, as between ranks."""
    up, low, up_row, low_row = math.inf, -math.inf, -1, -1
    for place in range(count):
        row = active[place]
        where = side(labels[row], alpha[row], limit)
        if where != LOWER and gamma[row] < up and coarse(-gamma[row]) > coarse(-up):
            up, up_row = gamma[row], row
        if where != UPPER and gamma[row] > low and coarse(gamma[row]) > coarse(low):
            low, low_row = gamma[row], row
    return up, up_row, low, low_row


@typed(
    f"{EXTREMES}({I8}, {I4}, {F8}, {F8}, {F8}, {F8}, f8, f8, f8, f8, {F8}, {F8}, {F8}, f8, {I8}, i8)",
)
def advance(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    squares: np.ndarray,
    up: np.ndarray,
    low: np.ndarray,
    up_square: float,
    low_square: float,
    width: float,
    step: float,
    gamma: np.ndarray,
    labels: np.ndarray,
    alpha: np.ndarray,
    limit: float,
    active: np.ndarray,
    count: int,
) -> tuple[float, int, float, int]:
    """gamma += step (K(up, .) - K(low, .)) of active rows, 2 `count` kernel elements; then their `extremes`. `up`,
    `low`: the two rows spread out, float64 (features)."""
    for place in range(count):
        row = active[place]
        with_up, with_low = 0.0, 0.0
        for at in range(starts[row], starts[row + 1]):
            with_up += values[at] * up[columns[at]]
            with_low += values[at] * low[columns[at]]
        far_up = max(squares[row] + up_square - 2.0 * with_up, 0.0)
        far_low = max(squares[row] + low_square - 2.0 * with_low, 0.0)
        gamma[row] += step * (math.exp(-width * far_up) - math.exp(-width * far_low))
    return extremes(gamma, labels, alpha, limit, active, count)


@typed(f"i8({F8}, {F8}, {F8}, f8, f8, f8, {I8}, i8)")
def shrink(
    gamma: np.ndarray,
    labels: np.ndarray,
    alpha: np.ndarray,
    limit: float,
    beta_up: float,
    beta_low: float,
    active: np.ndarray,
    count: int,
) -> int:
    """Drops rows that neither end of gamma can come to: those in I1, I2 above beta_low, and those in I3, I4 below
    beta_up. Keeps the order of `active`; returns how many are left."""
    left = 0
    for place in range(count):
        row = active[place]
        where = side(labels[row], alpha[row], limit)
        if (where == UPPER and gamma[row] > beta_low) or (where == LOWER and gamma[row] < beta_up):
            continue
        active[left] = row
        left += 1
    return left


@typed(
    f"void({I8}, {I4}, {F8}, {F8}, {I8}, {I4}, {F8}, {F8}, {F8}, {I8}, f8, {F8}, {F8}, {F8})",
)
def accumulate(
    starts: np.ndarray,
    columns: np.ndarray,
    values: np.ndarray,
    squares: np.ndarray,
    others_starts: np.ndarray,
    others_columns: np.ndarray,
    others_values: np.ndarray,
    others_squares: np.ndarray,
    weights: np.ndarray,
    rows: np.ndarray,
    width: float,
    spread: np.ndarray,
    total: np.ndarray,
    rest: np.ndarray,
) -> None:
    """total + rest += sum over the others of weight K(other, row), for `rows`. The sum is kept in two parts (two-sum of
    Knuth), so that blocks of others may come in any order: ranks have them in different ones. `spread`: zeros, float64
    (features), left as zeros."""
    for other in range(len(weights)):
        for at in range(others_starts[other], others_starts[other + 1]):
            spread[others_columns[at]] = others_values[at]
        for place in range(len(rows)):
            row = rows[place]
            product = 0.0
            for at in range(starts[row], starts[row + 1]):
                product += values[at] * spread[columns[at]]
            far = max(squares[row] + others_squares[other] - 2.0 * product, 0.0)
            term = weights[other] * math.exp(-width * far)
            old = total[place]
            new = old + term
            part = new - old
            rest[place] += (old - (new - part)) + (term - part)
            total[place] = new
        for at in range(others_starts[other], others_starts[other + 1]):
            spread[others_columns[at]] = 0.0
