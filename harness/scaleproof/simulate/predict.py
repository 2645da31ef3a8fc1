"""Predicts the record of a planned launch on fabric `simulated`: reads the profile, the cluster and the costs, draws
parameters from their uncertainty, and simulates."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from scaleproof.core.predicted import Predicted
from scaleproof.record.digest import machine_id
from scaleproof.simulate.binding import binding_resource
from scaleproof.simulate.case_costs import arithmetic_byte_s, cost_model
from scaleproof.simulate.cost_model import CostModel, Factors, MessageCosts
from scaleproof.simulate.nccl.device_calls import chosen_calls
from scaleproof.simulate.program import algorithm_of, exchange_plan, step_program
from scaleproof.simulate.shared_cores import shared_cores
from scaleproof.simulate.simulated_program import program_of, simulate_program
from scaleproof.simulate.simulated_spans import Prediction
from scaleproof.simulate.simulated_sweeps import sweep
from scaleproof.simulate.step_engine import simulate
from scaleproof.simulate.uncertain import Uncertain
from scaleproof.simulate.virtual_training import AnsweredCalls, Factor, Orders, simulate_training
from scaleproof.spec.case import AnyCase, CollectiveCase, OwnCase, TrainCase, TransferCase
from scaleproof.spec.cluster import Cluster, cluster_of, slowed
from scaleproof.spec.gpu_node import stated_jitter
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.spec.relative_times import relative_times
from scaleproof.spec.straggler_law import NODE_LAW
from scaleproof.stats.intervals import smallest_count
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.jitter_model import Jitter, Stragglers, read_jitter, variation
from scaleproof.workloads.profile import LayerTimes, Profile, Spread, profile_of

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that a prediction depends on, except the code and the seed."""

    case: AnyCase
    cluster: Cluster
    costs: CostModel
    profile: Profile | None
    jitter: Jitter | Stragglers | None = None

    @property
    def digest(self) -> str:
        """Digest of the contents. A case is predicted again when it changes."""
        parts: list[Any] = [
            self.case.case_id,
            asdict(self.cluster),
            asdict(self.costs),
            self.profile.model_dump(mode="json") if self.profile else None,
        ]
        parts += [asdict(self.jitter)] if self.jitter else []
        parts += [list(times)] if (times := relative_times(self.case)) else []
        parts += [{"cores": cores}] if (cores := shared_cores(self.case)) is not None else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def inputs_of(case: AnyCase, results: Path, programs: str = "") -> Inputs:
    """The inputs of a case. `programs`: folder of the suite's own. Raises SpecError, with the command that helps, when
    one of them is missing."""
    if isinstance(case, OwnCase):
        program_of(case, programs)
    computes = isinstance(case, TrainCase) and case.compute != "none"
    profile = (
        profile_of(case, results / "machines" / machine_id()) if computes and isinstance(case, TrainCase) else None
    )
    if isinstance(case, TrainCase) and not case.replicas:  # report early what is not simulated
        step_program(case, exchange_plan(case, network_of(case)), profile)
        relative_times(case)
        shared_cores(case)
    costs = replace(cost_model(case, results, machine_id()), factors=_factors(case))
    if profile is not None and 0 < (count := min(layer.forward_s.n for layer in profile.layers)) < smallest_count():
        costs = costs.also_assumed(
            f"compute is as in {count} process{'es' if count > 1 else ''}; {smallest_count()} would show how it spreads"
        )
    return Inputs(case, cluster_of(case), costs, profile, _jitter(case, results))


def _factors(case: AnyCase) -> Factors:
    return Factors(*(case.value(f"fabric.{field.name}_times", 1.0) for field in fields(Factors)))


def _jitter(case: AnyCase, results: Path) -> Jitter | Stragglers | None:
    """By the case's law; else, of compute that is not replayed, that of its node type or of this machine, where it is
    known."""
    node = case.value("compute.profile")
    law = case.value("fabric.stragglers") or case.value("compute.jitter")
    if law is None and case.value("compute") == "real":
        known = stated_jitter(node) if node else read_jitter(results, machine_id())
        law = (NODE_LAW if node else "fitted") if known else None
    return variation(law, results, machine_id(), node) if law else None


def predict(inputs: Inputs, seed: int | None = None, jitter_seed: int | None = None) -> Prediction:
    """The prediction with every parameter at its fitted value (`seed` None) or drawn from its uncertainty. Factors on
    compute are drawn from `jitter_seed`, or else from `seed`."""
    costs = inputs.costs.central() if seed is None else inputs.costs.drawn(seed)
    drawn = replace(inputs, cluster=drawn_cluster(inputs.cluster, seed))
    factors_of = (seed or 0) if jitter_seed is None else jitter_seed
    return _simulated(drawn, costs, drawn_profile(inputs.profile, seed), factors_of)


def factor_of(inputs: Inputs, seed: int) -> Factor:
    """By which factor a rank computes longer in a step than the profile says."""
    case, jitter = inputs.case, inputs.jitter
    times = relative_times(case)

    @lru_cache(64)  # ranks are in different steps
    def drawn(step: int) -> Sequence[float]:
        return [1.0] * case.ranks if jitter is None else jitter.factors(case.ranks, seed, step).tolist()

    def factor(rank: int, step: int) -> float:
        return drawn(step)[rank] * (times[rank] if times else 1.0)

    return factor


class Predictor:
    """Predicts launches of fabric `simulated` for the supervisor. `results`: folder with the machine's costs and
    profiles."""

    def __init__(self, results: Path) -> None:
        self._results = results.resolve()
        self._inputs_by_case: dict[str, Inputs] = {}
        self._binds_by_case: dict[str, str | None] = {}

    def inputs(self, case: AnyCase, programs: str = "") -> str:
        """Digest of the inputs of the case's prediction. `programs`: folder of the suite's own. Raises SpecError when
        one is missing."""
        return self._inputs(case, programs).digest

    def predict(
        self, launch: PlannedLaunch, orders: Orders | None = None, answered: AnsweredCalls | None = None
    ) -> Predicted:
        """Repetition 0 is the prediction itself. Each further repetition is a draw from the uncertainty of costs and
        profile, the same draw in all cases of a block. Factors on compute follow from the launch's seed, as in a launch
        that replays them. `orders`, `answered`: arrivals and calls of another run that are played back
        (virtual_training.py). Raises SpecError when an input is missing."""
        inputs, started = self._inputs(launch.case, launch.programs), perf_counter()
        seed = launch.seed if launch.plan_index else None
        case, checks = launch.case, list[dict[str, Any]]()
        if isinstance(case, OwnCase):
            costs = inputs.costs.central() if seed is None else inputs.costs.drawn(seed)
            cluster = drawn_cluster(inputs.cluster, seed)
            samples, checks = simulate_program(case, program_of(case, launch.programs), cluster, costs, launch.seed)
        elif isinstance(case, TrainCase) and case.replicas:
            samples, checks = self._trained(case, inputs, seed, launch.seed, orders or {}, answered or {})
        else:
            samples = predict(inputs, seed, launch.seed).samples()
        took_s = round(perf_counter() - started, 6)
        facts = _facts(inputs, seed) | {"took_s": took_s, "binds": self._binds(inputs)}
        return Predicted(samples, facts, checks)

    @staticmethod
    def _trained(
        case: TrainCase, inputs: Inputs, seed: int | None, data_seed: int, orders: Orders, answered: AnsweredCalls
    ) -> tuple[pa.Table, list[dict[str, Any]]]:
        """A strategy that is a program of each rank, with its mathematics."""
        costs = inputs.costs.central() if seed is None else inputs.costs.drawn(seed)
        profile = drawn_profile(inputs.profile, seed)
        assert profile is not None

        cluster = drawn_cluster(inputs.cluster, seed)
        factor = factor_of(inputs, data_seed)
        return simulate_training(case, cluster, costs, profile, factor, data_seed, orders, answered)

    def byte_s(self, case: AnyCase) -> float:
        """What a byte of a rank's own arithmetic takes, s (launch/start/simulated_launch.py)."""
        return arithmetic_byte_s(case, self._results, machine_id())

    def _binds(self, inputs: Inputs) -> str | None:
        """What binds the case, with every input at its value."""
        case, profile = inputs.case, inputs.profile
        if not isinstance(case, TrainCase) or profile is None or case.replicas:
            return None
        if case.case_id not in self._binds_by_case:
            found = binding_resource(case, profile, inputs.cluster, inputs.costs.central())
            self._binds_by_case[case.case_id] = found
        return self._binds_by_case[case.case_id]

    def _inputs(self, case: AnyCase, programs: str) -> Inputs:
        if case.case_id not in self._inputs_by_case:
            self._inputs_by_case[case.case_id] = inputs_of(case, self._results, programs)
        return self._inputs_by_case[case.case_id]


def _simulated(inputs: Inputs, costs: MessageCosts, profile: Profile | None, seed: int) -> Prediction:
    case = inputs.case
    if isinstance(case, TrainCase):
        return simulate(case, profile, inputs.cluster, costs, jitter=inputs.jitter, seed=seed)
    assert isinstance(case, CollectiveCase | TransferCase)
    return sweep(case, inputs.cluster, costs)


def _facts(inputs: Inputs, seed: int | None) -> dict[str, Any]:
    case, profile = inputs.case, inputs.profile
    parameters = [
        {"name": parameter.name, "value": parameter.value, "low": parameter.low, "high": parameter.high}
        | {"drawn": parameter.value if seed is None else parameter.drawn(seed)}
        for parameter in (*inputs.costs.parameters, *_link_rate(inputs.cluster))
    ]
    computed = (
        {"node": profile.node, "taken": profile.taken, "measured_at": profile.measured_at, "step_s": profile.step_s}
        if profile
        else None
    )
    return {
        "inputs": inputs.digest,
        "draw": seed,
        "costs": inputs.costs.source,
        "assumed": list(inputs.costs.assumed),
        "parameters": parameters,
        "goodput": inputs.costs.goodput,
        "factors": asdict(inputs.costs.factors),
        "profile": computed,
        "cluster": inputs.cluster.name,
        "jitter": asdict(inputs.jitter) if inputs.jitter else None,
        "relative_times": list(relative_times(case)) or None,
        "shared_cores": shared_cores(case),
        "algorithm": _algorithm(case),
    }


def _link_rate(cluster: Cluster) -> list[Uncertain]:
    """The factor on the rate of a cluster's links, where that is not known."""
    return [Uncertain(f"link rate of {cluster.name}", 1.0, *cluster.unsure)] if cluster.unsure else []


def drawn_cluster(cluster: Cluster, seed: int | None) -> Cluster:
    """A cluster with the rate of its links drawn, all alike (`seed` None: unchanged)."""
    unsure = _link_rate(cluster)
    return cluster if seed is None or not unsure else slowed(cluster, 1.0, 1 / unsure[0].drawn(seed))


def _algorithm(case: AnyCase) -> str | None:
    """Of the case's collectives; of those that the model of NCCL predicts, each algorithm with its protocol."""
    if isinstance(case, TrainCase) and (calls := chosen_calls(case, network_of(case))):
        return ", ".join(dict.fromkeys(f"NCCL's {call.algorithm} with {call.protocol}" for call in calls))
    return algorithm_of(case) if isinstance(case, TrainCase | CollectiveCase) else None


def drawn_profile(profile: Profile | None, seed: int | None) -> Profile | None:
    """A profile drawn from the intervals of its times (`seed` None: unchanged). All layers move together, because
    whatever slows one layer down on a machine slows down all of them."""
    if profile is None or seed is None:
        return profile
    name = f"compute of {profile.workload} on {profile.node}"

    def redrawn(time: Spread) -> Spread:
        return time.model_copy(update={"median": Uncertain(name, time.median, time.low, time.high).drawn(seed)})

    layers = []
    for layer in profile.layers:
        backward, weight = redrawn(layer.backward_s), redrawn(layer.weight_s)
        weight = weight.model_copy(update={"median": min(weight.median, backward.median)})
        layers.append(
            LayerTimes(
                name=layer.name, mac=layer.mac, forward_s=redrawn(layer.forward_s), backward_s=backward, weight_s=weight
            )
        )
    return profile.model_copy(update={"layers": tuple(layers), "update_s": redrawn(profile.update_s)})
