"""The checks of graphs: each defect is detected by its own check only, and statistics agree with SciPy and with known
laws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from scaleproof.workloads.inputs import statistics
from scaleproof.workloads.inputs.findings import BadInput, Finding, settle
from scaleproof.workloads.inputs.graphs import WebGraph, graph_inputs

NODES = 6000


@pytest.fixture(scope="module")
def sound() -> WebGraph:
    """Twenty hosts, zeta in-degrees, 10 % dangling nodes, most links inside hosts."""
    generator = np.random.default_rng(7)
    host = np.arange(NODES) // (NODES // 20)
    weight = (1 - generator.random(NODES)) ** (-1 / 1.2)
    weight = np.minimum(weight, 0.01 * weight.sum())
    source = np.repeat(np.arange(NODES), np.where(np.arange(NODES) % 10 == 0, 0, generator.geometric(0.1, NODES)))
    inside, size = generator.random(len(source)) < 0.7, NODES // 20
    anywhere = generator.choice(NODES, len(source), p=weight / weight.sum())
    local = host[source] * size + generator.permutation(anywhere) % size
    local = np.concatenate(
        [
            generator.choice(
                np.flatnonzero(host == k), int((host[source] == k).sum()), p=weight[host == k] / weight[host == k].sum()
            )
            for k in range(20)
        ]
    )
    target = np.where(inside, local, anywhere)
    lost = np.setdiff1d(np.arange(NODES), target)
    found_by = np.where((lost - 1) % 10 == 0, lost - 2, lost - 1) % NODES
    code = np.unique(np.concatenate([source, found_by]) * NODES + np.concatenate([target, lost]))
    source, target = np.divmod(code, NODES)
    not_loops = source != target
    return WebGraph("synthetic test", NODES, source[not_loops], target[not_loops], host, "synthetic: a recipe")


def findings(graph: WebGraph, nodes: int = NODES, *, large_scale: bool = False) -> list[Finding]:
    return graph_inputs(graph, nodes, 3, large_scale=large_scale)


def loud(graph: WebGraph, nodes: int = NODES, *, large_scale: bool = False) -> set[str]:
    return {
        f"{finding.check} {finding.name}"
        for finding in findings(graph, nodes, large_scale=large_scale)
        if finding.outcome in ("warn", "fail")
    }


def test_a_web_like_graph_has_no_warning_and_every_check(sound: WebGraph) -> None:
    assert loud(sound) == set()
    assert {finding.check for finding in findings(sound)} == {f"D{number}" for number in range(1, 13)}


def test_isolated_nodes_are_seen(sound: WebGraph) -> None:
    padded = replace(sound, nodes=2 * NODES, host=np.concatenate([sound.host, sound.host]))
    assert {"D3 isolated nodes", "D4 dangling nodes", "D5 largest weak component"} <= loud(padded, 2 * NODES)


def test_a_graph_without_dangling_nodes_is_seen(sound: WebGraph) -> None:
    silent = np.setdiff1d(np.arange(NODES), sound.source)
    filled = replace(
        sound,
        source=np.concatenate([sound.source, silent]),
        target=np.concatenate([sound.target, silent - silent % 300 + 1]),
    )
    assert loud(filled) == {"D4 dangling nodes", "D5 largest strong component"}  # all pages reach each other now


def test_a_single_host_is_seen(sound: WebGraph) -> None:
    assert loud(replace(sound, host=np.zeros(NODES, int))) == {
        "D8 largest host",
        "D11 links inside hosts above the null",
    }


def test_the_degree_preserving_shuffle_loses_its_structure(sound: WebGraph) -> None:
    shuffled = replace(sound, target=np.random.default_rng(1).permutation(sound.target))
    assert "D11 links inside hosts above the null" in loud(shuffled)
    assert not any(name.startswith(("D3", "D4", "D6", "D9", "D12")) for name in loud(shuffled))


def test_sorted_ids_repeated_arcs_and_loops_are_seen(sound: WebGraph) -> None:
    into = np.bincount(sound.target, minlength=NODES)
    rank = np.argsort(np.argsort(into, kind="stable"), kind="stable")
    assert "D10 order of ids" in loud(replace(sound, source=rank[sound.source], target=rank[sound.target]))
    twice = replace(
        sound,
        source=np.concatenate([sound.source, sound.source[:3000]]),
        target=np.concatenate([sound.target, sound.target[:3000]]),
    )
    assert "D7 repeated arcs" in loud(twice)
    loops = np.arange(1000)
    assert "D7 self loops" in loud(
        replace(sound, source=np.concatenate([sound.source, loops]), target=np.concatenate([sound.target, loops]))
    )


def test_in_degrees_without_a_heavy_tail_are_seen(sound: WebGraph) -> None:
    even = replace(sound, target=np.random.default_rng(2).integers(NODES, size=len(sound.target)))
    assert "D9 heavy tail of in-degrees" in loud(even)


def test_a_large_scale_claim_on_a_small_graph_is_seen(sound: WebGraph) -> None:
    assert loud(sound, large_scale=True) == {"D2 arcs over last-level cache"}


def test_a_wrong_number_of_nodes_fails(sound: WebGraph) -> None:
    with pytest.raises(BadInput, match="D2 nodes of synthetic test: 6000.*must be 6001"):
        settle([], findings(sound, NODES + 1))


def test_a_missing_recipe_warns(sound: WebGraph) -> None:
    assert [finding.name for finding in findings(replace(sound, recipe="")) if finding.outcome == "warn"] == [
        "provenance"
    ]


def test_an_arc_to_no_node_fails(sound: WebGraph) -> None:
    target = sound.target.copy()
    target[5] = NODES
    with pytest.raises(BadInput, match="D3 ids of arcs of synthetic test: 0 to 6000, must be 0 to 5999"):
        settle([], findings(replace(sound, target=target)))


def test_statistics_agree_with_scipy() -> None:
    generator = np.random.default_rng(5)
    values = np.sort(generator.standard_normal(500))
    assert statistics.ks_distance(values, statistics.normal_cdf(values)) == pytest.approx(
        stats.kstest(values, "norm").statistic
    )
    first, second = generator.integers(9, size=400), generator.integers(9, size=400)
    assert statistics.rank_correlation(first, first + second) == pytest.approx(
        stats.spearmanr(first, first + second).statistic
    )
    assert stats.kstwobign.sf(statistics.ks_limit(400) * 20) == pytest.approx(statistics.FALSE_ALARM, rel=1e-3)


def law(exponent: float, count: int, seed: int) -> np.ndarray:
    return stats.zipf.rvs(exponent, size=count, random_state=seed)


def test_the_exponent_of_a_zeta_law_is_found() -> None:
    for exponent in (2.1, 2.6):
        fit = statistics.fit_tail(law(exponent, 40_000, 3))
        assert fit is not None and fit.exponent == pytest.approx(exponent, abs=0.1)


def test_a_true_power_law_is_rarely_refuted_and_two_laws_in_one_are() -> None:
    def refuted(draw: np.ndarray) -> bool:
        fit = statistics.fit_tail(draw)
        assert fit is not None
        return statistics.goodness_of_fit(draw, fit, 1, 40) < 0.05

    assert sum(refuted(law(2.3, 4000, seed)) for seed in range(12)) <= 3
    assert refuted(np.concatenate([law(2.3, 4000, 1), np.full(400, 40)]))


def test_the_tail_of_a_power_law_is_heavier_than_exponential_and_that_of_a_poisson_law_is_not() -> None:
    for draw, heavy in ((law(2.3, 20_000, 1), True), (np.random.default_rng(4).poisson(30, 4000), False)):
        fit = statistics.fit_tail(draw)
        assert fit is not None and (statistics.against_exponential(draw, fit) > 2) is heavy
