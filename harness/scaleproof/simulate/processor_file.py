"""Fitted times of cores of a machine, as stored in results/machines/<id>/processor.json: what a message and its bytes
take of a core of its sender and of its receiver."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.simulate.cost_file import Parameter

FILE = "processor.json"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SideTime(_Part):
    """Of one side: s a message and s a byte."""

    message_s: Parameter
    byte_s: Parameter


class ProcessorCost(_Part):
    """Of one arm. `worst_error`: the largest relative error of the fit, at messages of `worst_nbytes`."""

    arm: str
    transport: str
    buffers: str
    fabric: str
    interface: str
    launches: int
    send: SideTime
    receive: SideTime
    worst_error: float
    worst_nbytes: int
    runs: tuple[str, ...]


class ProcessorTimes(_Part):
    """Of one machine at one time. A new fit replaces them."""

    schema_version: Literal[1] = 1
    machine: str
    code: str
    """Digest of the code that measured."""
    fitted_at: str
    suite: str
    experiment: str
    size: str
    transports: tuple[ProcessorCost, ...]


def processor_file(results: Path, machine: str) -> Path:
    """Path of a machine's times of cores."""
    return results / "machines" / machine / FILE


def read_processor(results: Path, machine: str) -> ProcessorTimes | None:
    """A machine's times of cores; None when none were fitted. Raises SpecError for a file of another version."""
    remedy = "no times of cores of this version; `scaleproof fit micro bandwidth` makes new ones"
    return read_form(processor_file(results, machine), ProcessorTimes, remedy)


def write_processor(results: Path, times: ProcessorTimes) -> Path:
    """Writes a machine's times of cores atomically."""
    return write_form(processor_file(results, times.machine), times)
