"""Fitted times of tensors of a machine, as stored in results/machines/<id>/tensors.json: what strategy parameter_server
takes of a rank's main thread for a tensor, beside its messages."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.simulate.cost_file import Parameter

FILE = "tensors.json"
SERVERS = "parameter_server"
"""The strategy that is fitted."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class TensorCost(_Part):
    """Of one arm, in s a tensor: to hand a gradient over (`push_s`); of a server for each worker, to begin a step
    (`begin_s`), and from one tensor to the next while it takes gradients, sums, updates and gives back (`serve_s`)."""

    arm: str
    transport: str
    fabric: str
    launches: int
    push_s: Parameter
    begin_s: Parameter
    serve_s: Parameter
    runs: tuple[str, ...]


class TensorTimes(_Part):
    """Of one machine at one time. A new fit replaces them."""

    schema_version: Literal[1] = 1
    machine: str
    code: str
    """Digest of the code that measured."""
    fitted_at: str
    suite: str
    experiment: str
    size: str
    transports: tuple[TensorCost, ...]


def tensor_file(results: Path, machine: str) -> Path:
    """Path of a machine's times of tensors."""
    return results / "machines" / machine / FILE


def read_tensors(results: Path, machine: str) -> TensorTimes | None:
    """A machine's times of tensors; None when none were fitted. Raises SpecError for a file of another version."""
    remedy = "no times of tensors of this version; `scaleproof fit micro tensors` makes new ones"
    return read_form(tensor_file(results, machine), TensorTimes, remedy)


def write_tensors(results: Path, times: TensorTimes) -> Path:
    """Writes a machine's times of tensors atomically."""
    return write_form(tensor_file(results, times.machine), times)
