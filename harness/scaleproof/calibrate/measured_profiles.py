"""Measures a network's profile on this machine, each repetition in a fresh process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from scaleproof.paths import IMPORT_ROOT
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.spec import registry
from scaleproof.spec.case import TrainCase
from scaleproof.spec.errors import SpecError
from scaleproof.stats.intervals import median, median_interval
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import FRAMEWORK, LayerTimes, Profile, Spread

LAUNCHES = 6
"""The smallest number that gives an interval."""
TIMEOUT_S = 300.0


@dataclass(frozen=True, slots=True)
class ProfileRequest:
    """A network to measure, at a batch size (samples of one rank)."""

    workload: str
    image_side: int | None
    width: float
    batch: int
    threads: int = 1

    @property
    def title(self) -> str:
        """The request for a line on the terminal."""
        side = "" if self.image_side is None else f" at side {self.image_side}"
        width = "" if self.width == 1 else f", width {self.width:g}"
        return (
            f"{self.workload}{side}{width}, batch {self.batch}, {self.threads} thread{'s' if self.threads > 1 else ''}"
        )

    def network(self) -> Network:
        """The network; SpecError for an unknown workload or an impossible size."""
        registry.get("workload", self.workload)
        network: Network = registry.load("workload", self.workload)(self.image_side, self.width)
        return network


def request_of(case: TrainCase) -> ProfileRequest:
    """The profile that a case replays."""
    return ProfileRequest(
        case.workload,
        case.workload_options.image_side,
        case.workload_options.width,
        case.batch,
        case.threads_per_rank,
    )


def measure_profile(request: ProfileRequest, launches: int, note: Callable[[str], None]) -> Profile:
    """Measure in so many processes, one after the other. `note` is called with a line about each. SpecError when one
    does not end well."""
    processes = repeated(lambda: _run(request), request.title, launches, note)
    return combined(
        request,
        processes,
        machine_id(),
        "the model that launches train with, nothing else running; moments from hooks on the layers' outputs",
    )


def repeated(
    run: Callable[[], dict[str, Any]], title: str, launches: int, note: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The answers of so many processes, one after the other. `note` is called with a line about each."""
    processes = []
    for number in range(launches):
        processes.append(run())
        step = sum(map(sum, (processes[-1][name] for name in ("forward", "backward", "update"))))
        note(f"{title}: process {number + 1} of {launches}, {processes[-1]['steps']} steps of {step * 1e3:.3g} ms")
    return processes


def combined(request: ProfileRequest, processes: Sequence[dict[str, Any]], node: str, how: str) -> Profile:
    """The profile that processes measured. `node`: machine or node type; `how`: conditions, for the description."""
    layers = []
    for number, layer in enumerate(request.network().layers):
        of = {
            f"{name}_s": spread([process[name][number] for process in processes])
            for name in ("forward", "backward", "weight")
        }
        of["weight_s"] = of["weight_s"].model_copy(
            update={"median": min(of["weight_s"].median, of["backward_s"].median)}
        )
        layers.append(LayerTimes(name=layer.name, mac=layer.mac, **of))
    steps = " to ".join(dict.fromkeys(str(pick(process["steps"] for process in processes)) for pick in (min, max)))
    taken = (
        f"median over {len(processes)} fresh process{'es' if len(processes) > 1 else ''} of each one's median over "
        f"{steps} steps after warm-up; {how}"
    )
    return Profile(
        **asdict(request),
        framework=FRAMEWORK,
        node=node,
        code=code_digest(),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        taken=taken,
        layers=tuple(layers),
        update_s=spread([process["update"][0] for process in processes]),
    )


def spread(values: Sequence[float]) -> Spread:
    """The median and its interval, which needs at least 6 values."""
    interval = median_interval(values)
    return Spread(
        median=median(values),
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        n=len(values),
    )


def _run(request: ProfileRequest) -> dict[str, Any]:
    return answer_of("layer_times", asdict(request), request)


def answer_of(module: str, arguments: dict[str, Any], request: ProfileRequest) -> dict[str, Any]:
    """What a module of this room prints in a fresh process, whose arguments are JSON. SpecError with its last line
    where it does not end well."""
    command = [sys.executable, "-m", f"{__package__}.{module}", json.dumps(arguments)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(request.threads))
    root, variables = IMPORT_ROOT, {**os.environ, **threads}
    try:
        completed = subprocess.run(
            command, cwd=root, env=variables, capture_output=True, text=True, timeout=TIMEOUT_S, check=True
        )
    except subprocess.CalledProcessError as error:
        last = error.stderr.strip().splitlines()[-1:] or [f"code {error.returncode}"]
        raise SpecError(f"{request.title}: the process that measured ended with: {last[0]}") from None
    except subprocess.TimeoutExpired:
        raise SpecError(
            f"{request.title}: the process that measured took longer than {TIMEOUT_S:g} s; choose a smaller batch"
        ) from None
    result: dict[str, Any] = json.loads(completed.stdout)
    return result
