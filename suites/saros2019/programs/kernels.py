"""The hot loops as machine code: SAROS block by block (with momentum, or per click as the authors' script), BPR by
single pairs, and BPR_b by all pairs at once. Factors are float arrays (users, d) and (items, d), changed in place."""

from __future__ import annotations

import numpy as np

from scaleproof.simulate.compiled import allocating, compiled


@compiled
def penalty(row: np.ndarray, l2: float, gradient: np.ndarray) -> float:
    """l2 |row|^2; its gradient is written."""
    total = 0.0
    for k in range(len(row)):
        total += row[k] * row[k]
        gradient[k] = 2 * l2 * row[k]
    return l2 * total


@allocating
def block_gradient(
    user: np.ndarray,
    items: np.ndarray,
    clicked: np.ndarray,
    others: np.ndarray,
    l2: float,
    of_user: np.ndarray,
    of_clicked: np.ndarray,
    of_others: np.ndarray,
) -> float:
    """Loss of a block, the mean over its pairs of log(1 + exp(-U.(Vi - Vj))) + l2 (|U|^2 + |Vi|^2 + |Vj|^2) (SAROS, the
    loss of a block). `clicked` (P,) and `others` (N,) are item ids; gradients are written into `of_user` (d,),
    `of_clicked` (P, d) and `of_others` (N, d). A pair costs one exponential, whatever d is."""
    dim, share = len(user), 1.0 / (len(clicked) * len(others))
    loss = penalty(user, l2, of_user)
    score, slope = np.zeros(len(others)), np.zeros(len(others))
    for j in range(len(others)):
        loss += penalty(items[others[j]], l2 / len(others), of_others[j])
        for k in range(dim):
            score[j] += user[k] * items[others[j], k]
    for i in range(len(clicked)):
        loss += penalty(items[clicked[i]], l2 / len(clicked), of_clicked[i])
        own, total = 0.0, 0.0
        for k in range(dim):
            own += user[k] * items[clicked[i], k]
        for j in range(len(others)):
            margin = own - score[j]
            small = np.exp(-abs(margin))  # never overflows
            loss += share * (max(-margin, 0.0) + np.log1p(small))
            part = share * (small if margin >= 0 else 1.0) / (1.0 + small)
            total += part
            slope[j] += part
        for k in range(dim):
            of_user[k] -= total * items[clicked[i], k]
            of_clicked[i, k] -= total * user[k]
    for j in range(len(others)):
        for k in range(dim):
            of_user[k] += slope[j] * items[others[j], k]
            of_others[j, k] += slope[j] * user[k]
    return loss


@compiled
def step_row(row: np.ndarray, velocity: np.ndarray, gradient: np.ndarray, rate: float, momentum: float) -> None:
    """A step of one row of factors; without momentum `velocity` is the gradient."""
    for k in range(len(row)):
        velocity[k] = momentum * velocity[k] + gradient[k]
        row[k] -= rate * velocity[k]


@compiled
def longest_run(start: np.ndarray, middle: np.ndarray, end: np.ndarray) -> int:
    """The most items, clicked or not, of any block; at least 1."""
    longest = 1
    for b in range(len(start)):
        longest = max(longest, middle[b] - start[b], end[b] - middle[b])
    return longest


@allocating
def step_block(
    user: np.ndarray,
    user_velocity: np.ndarray,
    items: np.ndarray,
    item_velocity: np.ndarray,
    others: np.ndarray,
    clicked: np.ndarray,
    rate: float,
    l2: float,
    momentum: float,
    gradients: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> float:
    """A step of all rows of a block. `gradients` is room for those of block_gradient. Returns the loss before it."""
    of_user, of_clicked, of_others = gradients
    loss = block_gradient(user, items, clicked, others, l2, of_user, of_clicked, of_others)
    step_row(user, user_velocity, of_user, rate, momentum)
    for i in range(len(clicked)):
        step_row(items[clicked[i]], item_velocity[clicked[i]], of_clicked[i], rate, momentum)
    for j in range(len(others)):
        step_row(items[others[j]], item_velocity[others[j]], of_others[j], rate, momentum)
    return loss


@compiled
def copy_rows(chosen: np.ndarray, source: np.ndarray, target: np.ndarray) -> None:
    """Rows of these numbers, from one array to another."""
    for i in chosen:
        for k in range(source.shape[1]):
            target[i, k] = source[i, k]


@allocating
def saros_pass(
    users: np.ndarray,
    items: np.ndarray,
    user_velocity: np.ndarray,
    item_velocity: np.ndarray,
    order: np.ndarray,
    first_block: np.ndarray,
    start: np.ndarray,
    middle: np.ndarray,
    end: np.ndarray,
    item: np.ndarray,
    rate: float,
    l2: float,
    momentum: float,
    undo: np.ndarray,
) -> tuple[float, int, int]:
    """A pass over users in this order, a step per block. Block b of user u (first_block[u] <= b < first_block[u + 1])
    has the items without a click item[start[b]:middle[b]] and the clicked ones item[middle[b]:end[b]]; blocks of a user
    lie side by side. After a user with undo[u] the factors before it are restored (SAROS, algorithm 1); they are kept
    for every user, since an online learner does not know beforehand how many blocks follow. Returns the mean loss of a
    block before its step, the blocks and the pairs."""
    dim, longest = users.shape[1], longest_run(start, middle, end)
    kept, kept_velocity = np.empty_like(items), np.empty_like(item_velocity)
    of_clicked, of_others = np.empty((longest, dim), users.dtype), np.empty((longest, dim), users.dtype)
    gradients = (np.empty(dim, users.dtype), of_clicked, of_others)
    loss, blocks, pairs = 0.0, 0, 0
    for u in order:
        first, last = first_block[u], first_block[u + 1]
        if first == last:
            continue
        met = item[start[first] : end[last - 1]]
        before, before_velocity = users[u].copy(), user_velocity[u].copy()
        copy_rows(met, items, kept)
        copy_rows(met, item_velocity, kept_velocity)
        for b in range(first, last):
            others, clicked = item[start[b] : middle[b]], item[middle[b] : end[b]]
            loss += step_block(
                users[u], user_velocity[u], items, item_velocity, others, clicked, rate, l2, momentum, gradients
            )
            pairs += len(clicked) * len(others)
        blocks += last - first
        if undo[u]:
            users[u] = before
            user_velocity[u] = before_velocity
            copy_rows(met, kept, items)
            copy_rows(met, kept_velocity, item_velocity)
    return loss / max(blocks, 1), blocks, pairs


@allocating
def bpr_pass(
    users: np.ndarray,
    items: np.ndarray,
    user: np.ndarray,
    clicked: np.ndarray,
    first_other: np.ndarray,
    other: np.ndarray,
    draws: np.ndarray,
    rate: float,
    l2: float,
) -> float:
    """A step for each drawn click (BPR, Rendle et al. 2009): user[c] prefers clicked[c] to one of the items that it was
    shown and did not click, other[first_other[u]:first_other[u + 1]]. `draws` (n, 2) in [0, 1): of the click, of the
    other item. Returns the mean loss before the steps."""
    dim, loss, steps = users.shape[1], 0.0, 0
    for n in range(len(draws)):
        c = int(draws[n, 0] * len(user))
        u, i = user[c], clicked[c]
        shown = first_other[u + 1] - first_other[u]
        if shown == 0:
            continue
        j = other[first_other[u] + int(draws[n, 1] * shown)]
        margin = 0.0
        for k in range(dim):
            margin += users[u, k] * (items[i, k] - items[j, k])
        small = np.exp(-abs(margin))
        loss += max(-margin, 0.0) + np.log1p(small)
        slope = (small if margin >= 0 else 1.0) / (1.0 + small)
        steps += 1
        for k in range(dim):
            of_user = slope * (items[i, k] - items[j, k]) - 2 * l2 * users[u, k]
            of_i = slope * users[u, k] - 2 * l2 * items[i, k]
            of_j = -slope * users[u, k] - 2 * l2 * items[j, k]
            users[u, k] += rate * of_user
            items[i, k] += rate * of_i
            items[j, k] += rate * of_j
    return loss / max(steps, 1)


@allocating
def full_gradient(
    users: np.ndarray,
    items: np.ndarray,
    first_clicked: np.ndarray,
    clicked: np.ndarray,
    first_other: np.ndarray,
    other: np.ndarray,
    l2: float,
    of_users: np.ndarray,
    of_items: np.ndarray,
) -> tuple[float, int]:
    """BPR_b: each user is one block of all its pairs; gradients of the sum over users are written into `of_users` and
    `of_items`. Returns that sum and the number of pairs."""
    dim, loss, pairs, longest = users.shape[1], 0.0, 0, 1
    of_items[:] = 0
    for u in range(len(users)):
        longest = max(longest, first_clicked[u + 1] - first_clicked[u], first_other[u + 1] - first_other[u])
    of_clicked, of_others = np.empty((longest, dim), users.dtype), np.empty((longest, dim), users.dtype)
    for u in range(len(users)):
        mine, shown = clicked[first_clicked[u] : first_clicked[u + 1]], other[first_other[u] : first_other[u + 1]]
        of_users[u] = 0
        if len(mine) == 0 or len(shown) == 0:
            continue
        loss += block_gradient(users[u], items, mine, shown, l2, of_users[u], of_clicked, of_others)
        pairs += len(mine) * len(shown)
        for i in range(len(mine)):
            of_items[mine[i]] += of_clicked[i]
        for j in range(len(shown)):
            of_items[shown[j]] += of_others[j]
    return loss, pairs
