"""Node types whose compute was measured on a GPU: `scaleproof profile --device cuda` makes one, `scaleproof predict
--profile NAME` computes with it, on any machine that has its file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from scaleproof.core.atomic_write import read_form, write_form
from scaleproof.paths import PROJECT
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown
from scaleproof.spec.registry import nearest
from scaleproof.workloads.networks import Network
from scaleproof.workloads.profile import Profile

FOLDER = "node_types"
"""In the results folder: node types that were measured here."""
READY = PROJECT / "clusters" / "measured"
"""Node types that come with Scaleproof."""
Precision = Literal["float32", "tf32", "bfloat16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)


class MeasuredNodeType(BaseModel):
    """A rank with a GPU of its own, and how long it takes for each layer of some networks."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    name: str
    precision: Precision = Field(description="Of products: 32-bit floats, TensorFloat-32, or bfloat16 (autocast).")
    environment: dict[str, str] = Field(description="GPU, driver, libraries and node, as they were measured.")
    profiles: tuple[Profile, ...]

    @property
    def summary(self) -> str:
        """For a line on the terminal."""
        known = self.environment
        versions = f"torch {known.get('torch', '?')}, driver {known.get('driver_version', 'not known')}"
        return f"{known.get('gpu', 'a GPU')}, {self.precision}, {versions}"

    @property
    def compute(self) -> str:
        """What makes times comparable: profiles of one node type agree in it."""
        names = ("gpu", "driver_version", "torch", "cuda", "cudnn", "power_limit")
        return ", ".join(f"{name} {self.environment[name]}" for name in names if name in self.environment)

    def profile_of(self, network: Network, batch: int) -> Profile:
        """The profile of a network at so many samples of a rank. SpecError, with what was measured, where there is
        none."""
        of_network = [profile for profile in self.profiles if profile.workload == network.name]
        reasons = [profile.why_not(network, batch) for profile in of_network]
        for profile, reason in zip(of_network, reasons, strict=True):
            if not reason:
                return profile
        measured = ", ".join(f"{each.workload} with {each.batch} samples" for each in of_network or self.profiles)
        raise SpecError(
            f"node type {self.name!r} was measured with {measured}, and not {network.name} with {batch} samples a rank "
            f"at this size; on that GPU: scaleproof profile --device cuda --workload {network.name} --batch {batch} "
            f"--precision {self.precision}"
        )

    def with_profile(self, profile: Profile) -> MeasuredNodeType:
        """With this profile in place of an earlier one of the same network, size and batch."""
        others = [each for each in self.profiles if _key(each) != _key(profile)]
        return self.model_copy(update={"profiles": tuple(sorted([*others, profile], key=_key))})


def _key(profile: Profile) -> tuple[str, int, float, int]:
    return profile.workload, profile.image_side or 0, profile.width, profile.batch


def default_name(gpu: str, precision: Precision) -> str:
    """`NVIDIA H100 80GB HBM3` in bfloat16: h100_80gb_hbm3_bfloat16."""
    words = "".join(letter if letter.isalnum() else " " for letter in gpu.lower()).split()
    return "_".join([*(word for word in words if word != "nvidia"), precision])


def measured_node_type(name: str, results: Path) -> MeasuredNodeType | None:
    """By name: measured here, or one that comes with Scaleproof; None where there is none. SpecError for a file that is
    none."""
    path = next((path for path in _files(results) if path.stem == name), None)
    return None if path is None else _read(path)


def measured_node_types(results: Path) -> list[MeasuredNodeType]:
    """All, by name; those measured here first."""
    return [_read(path) for path in _files(results)]


def keep(measured: MeasuredNodeType, results: Path) -> Path:
    """Writes the node type, with the profiles that an earlier file of the same environment has. SpecError where that
    file is of another GPU, driver or library: its times are not comparable."""
    path = results / FOLDER / f"{measured.name}.json"
    earlier = _read(path) if path.exists() else None
    if earlier is not None:
        if (earlier.precision, earlier.compute) != (measured.precision, measured.compute):
            raise SpecError(
                f"{shown(path)} was measured with {earlier.precision}, {earlier.compute}; this is "
                f"{measured.precision}, {measured.compute}: give another --name"
            )
        kept = earlier
        for profile in measured.profiles:
            kept = kept.with_profile(profile)
        measured = kept.model_copy(update={"environment": measured.environment})
    return write_form(path, measured)


def refuse_unknown(name: str, known: list[str], results: Path) -> None:
    """SpecError with the nearest name unless `name` is one of `known`, or was measured."""
    if name not in known:
        names = [*known, *(path.stem for path in _files(results))]
        raise SpecError(
            f"--profile: unknown node type {name!r} in clusters/ and {shown(results / FOLDER)}; {nearest(name, names)}"
        )


def _files(results: Path) -> list[Path]:
    return [path for folder in (results / FOLDER, READY) for path in sorted(folder.glob("*.json"))]


def _read(path: Path) -> MeasuredNodeType:
    found = read_form(path, MeasuredNodeType, "no node type of this version; measure it anew")
    assert found is not None, path
    return found
