"""From a planned launch of fabric `simulated` to what its record holds: finds profile, cluster and costs, draws from
their uncertainty, simulates."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from scaleproof.core.missing_input import MissingInput
from scaleproof.launch.start.simulated_launch import Predicted
from scaleproof.record.digest import machine_id
from scaleproof.simulate.case_costs import cost_model
from scaleproof.simulate.cost_model import CostModel, MessageCosts, Uncertain
from scaleproof.simulate.jitter_model import Jitter, read_jitter
from scaleproof.simulate.program import algorithm_of, exchange_plan, step_program
from scaleproof.simulate.simulated_spans import Prediction
from scaleproof.simulate.simulated_sweeps import sweep
from scaleproof.simulate.step_engine import simulate
from scaleproof.spec.case import AnyCase, CollectiveCase, TrainCase, TransferCase
from scaleproof.spec.cluster import Cluster, cluster_of
from scaleproof.spec.plan import PlannedLaunch
from scaleproof.stats.intervals import smallest_count
from scaleproof.workloads.case_network import network_of
from scaleproof.workloads.profile import LayerTimes, Profile, Spread, profile_of


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a prediction follows from, besides the code and the seed."""

    case: AnyCase
    cluster: Cluster
    costs: CostModel
    profile: Profile | None
    jitter: Jitter | None = None

    @property
    def digest(self) -> str:
        """Of their contents: another one, and a case is predicted again."""
        parts = [
            self.case.case_id,
            asdict(self.cluster),
            asdict(self.costs),
            self.profile.model_dump(mode="json") if self.profile else None,
        ]
        parts += [asdict(self.jitter)] if self.jitter else []
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def inputs_of(case: AnyCase, results: Path) -> Inputs:
    """SpecError, with what to type, where something is missing."""
    if not isinstance(case, TrainCase | CollectiveCase | TransferCase):
        raise MissingInput(f"program {case.program!r} is not simulated", "use 'train', 'collective' or 'transfer'")
    computes = isinstance(case, TrainCase) and case.compute != "none"
    profile = (
        profile_of(case, results / "machines" / machine_id()) if computes and isinstance(case, TrainCase) else None
    )
    if isinstance(case, TrainCase):  # what cannot be simulated is said before anything is
        step_program(case, exchange_plan(case, network_of(case)), profile)
    costs = cost_model(case, results, machine_id())
    if profile is not None and 0 < (count := min(layer.forward_s.n for layer in profile.layers)) < smallest_count():
        costs = costs.also_assumed(
            f"compute is as in {count} process{'es' if count > 1 else ''}; {smallest_count()} would show how it spreads"
        )
    return Inputs(case, cluster_of(case), costs, profile, _jitter(case, results))


def _jitter(case: AnyCase, results: Path) -> Jitter | None:
    """This machine's, where the case computes for real on it: what is replayed sleeps as long every time, and of other
    hardware nothing is known."""
    if not isinstance(case, TrainCase) or case.compute != "real" or case.compute_options.profile is not None:
        return None
    fitted = read_jitter(results, machine_id())
    return fitted.jitter if fitted else None


def predict(inputs: Inputs, seed: int | None = None) -> Prediction:
    """With every parameter at its value (`seed` None), or drawn from its uncertainty under the seed."""
    costs = inputs.costs.central() if seed is None else inputs.costs.drawn(seed)
    return _simulated(inputs, costs, drawn_profile(inputs.profile, seed), seed or 0)


class Predictor:
    """What the supervisor asks for launches of fabric `simulated`; `results`: the folder with the machine's costs and
    profiles."""

    def __init__(self, results: Path) -> None:
        self._results = results.resolve()
        self._known: dict[str, Inputs] = {}

    def inputs(self, case: AnyCase) -> str:
        """Digest of all that a prediction of the case follows from; SpecError where something is missing."""
        return self._inputs(case).digest

    def predict(self, launch: PlannedLaunch) -> Predicted:
        """Repetition 0 is the prediction itself; each further one is a draw from the uncertainty of costs and profile,
        the same in all cases of a block.

        SpecError where something is missing."""
        inputs, started = self._inputs(launch.case), perf_counter()
        seed = launch.seed if launch.plan_index else None
        prediction = predict(inputs, seed)
        facts = _facts(inputs, seed) | {"took_s": round(perf_counter() - started, 6)}
        return Predicted(prediction.samples(), facts)

    def _inputs(self, case: AnyCase) -> Inputs:
        if case.case_id not in self._known:
            self._known[case.case_id] = inputs_of(case, self._results)
        return self._known[case.case_id]


def _simulated(inputs: Inputs, costs: MessageCosts, profile: Profile | None, seed: int) -> Prediction:
    case = inputs.case
    if isinstance(case, TrainCase):
        return simulate(case, profile, inputs.cluster, costs, jitter=inputs.jitter, seed=seed)
    assert isinstance(case, CollectiveCase | TransferCase)
    return sweep(case, inputs.cluster, costs)


def _facts(inputs: Inputs, seed: int | None) -> dict[str, Any]:
    case, profile = inputs.case, inputs.profile
    parameters = [
        asdict(one) | {"drawn": one.value if seed is None else one.drawn(seed)} for one in inputs.costs.parameters
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
        "profile": computed,
        "cluster": inputs.cluster.name,
        "jitter": asdict(inputs.jitter) if inputs.jitter else None,
        "algorithm": algorithm_of(case) if isinstance(case, TrainCase | CollectiveCase) else None,
    }


def drawn_profile(profile: Profile | None, seed: int | None) -> Profile | None:
    """Drawn from the intervals of its times under the seed (None: as it is). All layers move together: what makes one
    slower on a machine makes them all slower."""
    if profile is None or seed is None:
        return profile
    name = f"compute of {profile.workload} on {profile.node}"

    def moved(time: Spread) -> Spread:
        return time.model_copy(update={"median": Uncertain(name, time.median, time.low, time.high).drawn(seed)})

    layers = []
    for layer in profile.layers:
        backward, weight = moved(layer.backward_s), moved(layer.weight_s)
        weight = weight.model_copy(update={"median": min(weight.median, backward.median)})
        layers.append(
            LayerTimes(
                name=layer.name, mac=layer.mac, forward_s=moved(layer.forward_s), backward_s=backward, weight_s=weight
            )
        )
    return profile.model_copy(update={"layers": tuple(layers), "update_s": moved(profile.update_s)})
