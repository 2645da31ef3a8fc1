"""das2016's hybrid parallelism and distributed update on real ranks: the same training as one worker's, the bytes of
the formulas, and what is refused."""

from __future__ import annotations

import json
import os
import signal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from scaleproof.claims.metrics_pairs import EQUIVALENT
from scaleproof.core.context import RankContext
from scaleproof.programs import train
from scaleproof.rank.unsupervised_ranks import run_ranks
from scaleproof.stats.training_equivalence import relative_difference
from scaleproof.strategies.activations import _Border, _Join
from scaleproof.strategies.hybrid import Hybrid
from scaleproof.strategies.update_parts import Part
from scaleproof.transports.contract import Done, Handle
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import FILE, peak_profile
from tests.integration._training import Outcome, case_of, launch
from tests.stand_in import stand_in

STEPS = 15
TOLERANCE = EQUIVALENT
"""As in test_equivalence.py."""
DIVISIONS = [(2, 1), (2, 2), (4, 1), (4, 2), (4, 4)]
"""Ranks and groups. With (4, 1) the last layer's 10 features are in uneven strips."""
RING: dict[str, Any] = {"collective": "ring", "steps": STEPS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hybrid")


@cache
def reference(folder: Path, workload: str = "dnn_digits", minibatch: int = 64) -> Outcome:
    """One worker with the whole minibatch."""
    return launch(
        folder / f"{workload}-{minibatch}",
        case_of(workload=workload, minibatch=minibatch, steps=STEPS, evaluate_every=15),
    )


def assert_equivalent(outcome: Outcome, base: Outcome) -> None:
    assert outcome.failed_checks == []
    assert relative_difference(outcome.values("loss"), base.values("loss")) <= TOLERANCE
    assert relative_difference(outcome.parameters, base.parameters) <= TOLERANCE


@pytest.mark.parametrize("workload", ["dnn_digits", "vgg_digits"])
@pytest.mark.parametrize(("ranks", "groups"), DIVISIONS)
def test_workers_in_groups_train_as_one_does(ranks: int, groups: int, workload: str, folder: Path) -> None:
    case = case_of(
        **RING, ranks=ranks, groups=groups, strategy="hybrid", transport="shm", workload=workload, evaluate_every=15
    )
    outcome = launch(folder / f"{workload}-{ranks}-{groups}", case)
    assert_equivalent(outcome, reference(folder, workload))
    assert np.allclose(outcome.values("test_accuracy"), reference(folder, workload).values("test_accuracy"), atol=0.003)
    assert outcome.count("test_accuracy", rank=1) == 0


@pytest.mark.parametrize(
    ("transport", "fields"),
    [("tcp", {}), ("tcp", {"strategy.communication": "main"}), ("gloo", {}), ("ucx", {}), ("grpc", {})],
)
def test_groups_train_so_over_any_sends(transport: str, fields: dict[str, Any], folder: Path) -> None:
    case = case_of(**RING, ranks=4, groups=2, strategy="hybrid", transport=transport, **fields)
    assert_equivalent(launch(folder / f"{transport}{len(fields)}", case), reference(folder))


def test_strips_need_not_divide_evenly(folder: Path) -> None:
    case = case_of(**RING, ranks=3, groups=1, minibatch=63, strategy="hybrid", transport="tcp")
    assert_equivalent(launch(folder / "uneven", case), reference(folder, minibatch=63))


@pytest.mark.parametrize(
    "fields",
    [
        {"ranks": 2, "transport": "shm", "collective": "ring"},
        {"ranks": 4, "transport": "tcp", "collective": "halving_doubling"},
        {"ranks": 2, "transport": "gloo", "collective": "native"},
        {"ranks": 2, "transport": "horovod", "collective": "native"},
        {"ranks": 3, "transport": "tcp", "collective": "ring", "strategy.communication": "main", "minibatch": 63},
    ],
)
def test_a_distributed_update_is_the_whole_one(fields: dict[str, Any], folder: Path) -> None:
    outcome = launch(
        folder / "-".join(map(str, fields.values())), case_of(strategy="distributed_update", steps=STEPS, **fields)
    )
    assert_equivalent(outcome, reference(folder, minibatch=fields.get("minibatch", 64)))
    assert outcome.count("communication") == outcome.count("queue") > STEPS


def _local(self: _Border, gradient: np.ndarray) -> np.ndarray:
    rank, points = self._activations.group.rank, len(gradient) // self._ranks
    return np.ascontiguousarray(gradient[rank * points : (rank + 1) * points])


def _partial(self: _Join, gradient: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(gradient[:, self._mine])


def _unstepped(self: Part) -> Handle:
    return Done()


@pytest.mark.parametrize(
    ("target", "mistake", "workload"),
    [
        ("activations._Border.backward", _local, "vgg_digits"),
        ("activations._Join.backward", _partial, "dnn_digits"),
        ("update_parts.Part.reduce", _unstepped, "dnn_digits"),
    ],
)
def test_partial_sums_that_nobody_reduces_are_seen(
    target: str, mistake: Any, workload: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: each exchange left out is far beyond the tolerance."""
    monkeypatch.setattr(f"scaleproof.strategies.{target}", mistake)
    outcome = launch(
        folder / target,
        case_of(**RING, ranks=4, groups=2, strategy="hybrid", transport="shm", workload=workload, learning_rate=0.01),
    )
    base = launch(folder / f"{target}-base", case_of(workload=workload, steps=STEPS, learning_rate=0.01))
    assert relative_difference(outcome.parameters, base.parameters) > 100 * TOLERANCE


class Drifting(Hybrid):
    """Rank 3's strips become others."""

    def finish(self, update: Any) -> None:
        super().finish(update)
        if self.context.rank == 3:
            self.shared[-1].parts[0].values[:1] += 1


def test_strips_that_differ_between_groups_fail_the_launch_by_a_check(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(monkeypatch, "strategy", "hybrid", Drifting)
    case = case_of(collective="ring", ranks=4, groups=2, strategy="hybrid", transport="shm", steps=1)
    assert any(
        "rank 3 differs from rank 1" in check for check in map(str, launch(folder / "drift", case).failed_checks)
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"workload": "vgg_digits"},
        {"workload": "cd_dnn", "workload.data": "synthetic", "workload.width": 0.06, "minibatch": 16},
    ],
)
def test_every_number_of_groups_sends_the_bytes_of_the_formulas_and_the_fewest_are_chosen(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    facts_by_groups = {groups: facts(tmp_path, groups, **fields) for groups in (1, 2, 4, 0)}
    for groups, group_facts in facts_by_groups.items():
        assert group_facts["groups"] == groups or not groups
        for kind, nbytes in group_facts["formula"].items():
            assert group_facts["sent"][kind] == pytest.approx(nbytes, rel=0.01), (groups, kind)
    least = min((1, 2, 4), key=lambda groups: sum(facts_by_groups[groups]["sent"].values()))
    assert facts_by_groups[0]["groups"] == facts_by_groups[0]["best_groups"] == least
    assert facts_by_groups[0]["chosen_by"] == "fewest bytes" and facts_by_groups[0]["closed_form_groups"] > 0


def test_replayed_compute_moves_the_same_bytes(tmp_path: Path) -> None:
    """All but the labels, which nobody draws: 8 bytes a point and peer."""
    fields = {"workload": "vgg_digits", "minibatch": 64}
    real, replayed = (
        facts(tmp_path, 2, **fields),
        facts(tmp_path, 2, compute="replay", profile="xeon_e5_2698v3_x2", efficiency=0.5, **fields),
    )
    assert real["sent"]["activations"] - replayed["sent"]["activations"] == 8 * 32 / 2
    assert {**real["sent"], "activations": 0} == {**replayed["sent"], "activations": 0}


def test_a_rank_that_dies_within_a_pass_is_told_by_those_that_wait_for_its_activations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(self: _Join, own: np.ndarray) -> np.ndarray:
        if self._activations.group.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return forward(self, own)

    forward = _Join.forward
    monkeypatch.setattr(_Join, "forward", dies)
    first, second = run_ranks(case_of(**RING, ranks=2, groups=1, strategy="hybrid", transport="tcp"), train.run, 30)
    assert "PeerLost" in first and second == "ended by SIGKILL"


def facts(folder: Path, groups: int, **fields: Any) -> dict[str, Any]:
    """What 4 ranks' record says of a launch over tcp."""
    case = case_of(collective="ring", ranks=4, groups=groups, strategy="hybrid", transport="tcp", steps=2, **fields)

    def body(context: RankContext) -> None:
        options = case.compute_options
        if options.profile is not None and options.efficiency is not None:
            profile = peak_profile(network_of(case), case.minibatch // case.ranks, options.profile, options.efficiency)
            draft = context.folder / f".profile-{context.rank}"
            draft.write_text(profile.model_dump_json())
            draft.rename(context.folder / FILE)
        train.run(context)
        if context.rank == 0:
            (folder / "facts.json").write_text(json.dumps(context.facts["hybrid"]))

    assert run_ranks(case, body) == [""] * 4
    rank_facts: dict[str, Any] = json.loads((folder / "facts.json").read_text())
    return rank_facts
