"""Measures a network's profile on a GPU of this node, each repetition in a fresh process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from scaleproof.calibrate.measured_node_types import MeasuredNodeType, Precision, default_name
from scaleproof.calibrate.measured_profiles import ProfileRequest, answer_of, combined, repeated

HOW = (
    "moments are CUDA events at the hooks of the layers' outputs, steps follow one another without a wait; inputs stay "
    "on the GPU, cuDNN chooses its algorithms by trying them, and nothing else runs"
)


def measure_on_device(
    request: ProfileRequest,
    device: str,
    precision: Precision,
    launches: int,
    note: Callable[[str], None],
    name: str | None = None,
) -> MeasuredNodeType:
    """The node type with the profile of this one network. `name`: else by GPU and precision. SpecError when a process
    does not end well."""
    arguments = asdict(request) | {"device": device, "precision": precision}
    title = f"{request.workload}, batch {request.batch}, {precision} on {device}"
    processes = repeated(lambda: _run(arguments, request), title, launches, note)
    environment = processes[-1]["environment"]
    name = name or default_name(environment["gpu"], precision)
    profile = combined(request, processes, name, HOW)
    return MeasuredNodeType(name=name, precision=precision, environment=environment, profiles=(profile,))


def _run(arguments: dict[str, Any], request: ProfileRequest) -> dict[str, Any]:
    return answer_of("device_layer_times", arguments, request)
