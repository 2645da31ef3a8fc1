"""Fields of a case that are right alone and wrong together, whatever the plugins; a plugin checks its own.

Each check raises FieldError, which names the field to point at. No plugin is named here: traits decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.spec.fault_checks import check_faults
from scaleproof.spec.mixed_nodes import other_nodes

Case = Any
"""A CommonCase, whose module imports this one."""


def check_common(case: Case) -> None:
    """Transport, collective, launcher, nodes, and what is slowed."""
    if case.nodes > case.ranks:
        raise FieldError("nodes", f"{case.nodes} nodes for {case.ranks} ranks; every node needs one")
    if case.transport is not None:
        _collective_fits(case)
        _launcher_fits(case)
    _buffers_fit(case)
    _slowness_fits(case)


def written_key(case: Case, field: str) -> str:
    """Which of two fields that do not fit to point at: this one where the user wrote it, else the transport."""
    return field if {field, f"{field}_options"} & case.model_fields_set else "transport"


def _collective_fits(case: Case) -> None:
    transport = case.plugin("transport")
    lifted = case.plugin("collective").implementation is not None
    sends_itself = case.program in ("transfer", "own") or (
        case.value("strategy") is not None and case.replicas is not None
    )
    needs_collectives = not (case.program == "transfer" or (sends_itself and not lifted))
    if (lifted and not transport.sends) or (transport.point_to_point and not lifted and needs_collectives):
        algorithms = ", ".join(registry.algorithms())
        requirement = f"an algorithm ({algorithms})" if transport.point_to_point else "'native'"
        message = f"collective {case.collective!r} does not fit transport {case.transport!r}; it takes {requirement}"
        raise FieldError(written_key(case, "collective"), message)


def _launcher_fits(case: Case) -> None:
    needed = case.plugin("transport").launcher
    if needed not in (case.launcher, case.plugin("launcher").substitutes):
        message = f"transport {case.transport!r} needs launcher {needed!r}, not {case.launcher!r}"
        raise FieldError(written_key(case, "launcher"), message)


def _buffers_fit(case: Case) -> None:
    if case.buffers == "plain" and (case.transport is None or not case.plugin("transport").own_memory):
        owners = ", ".join(map(repr, registry.with_trait("transport", "own_memory")))
        message = f"transport {case.transport!r} has plain buffers only; leave it out, or take one of {owners}"
        raise FieldError("buffers", message)


def _slowness_fits(case: Case) -> None:
    """Dilation and shrink: something must follow them, and they must leave whole elements."""
    slow = [name for name in ("dilation", "shrink") if getattr(case, name) != 1]
    if not slow:
        return
    if case.program == "own":
        message = "a suite's own program is not slowed by it, its times would be divided all the same; leave it out"
        raise FieldError(slow[0], message)
    if case.transport and not case.plugin("fabric").slows_links:
        slowing = registry.with_trait("fabric", "slows_links")
        message = f"fabric {case.fabric!r} does not slow its links with it; use {' or '.join(map(repr, slowing))}"
        raise FieldError(slow[0], message)
    try:
        itemsize = np.dtype(getattr(case, "dtype", "uint8")).itemsize
    except TypeError:
        raise FieldError("dtype", f"{getattr(case, 'dtype', '')!r} is no data type of NumPy") from None
    if uneven := [size for size in getattr(case, "sizes", ()) if size % (case.shrink * itemsize)]:
        message = f"size {uneven[0]} does not divide by {case.shrink:g} into whole elements of {itemsize} B"
        raise FieldError("shrink", message)


def check_transfer(case: Case) -> None:
    """Program `transfer` needs sends and receives."""
    if not case.plugin("transport").sends:
        message = f"{case.transport!r} has collectives only, no sends and receives; it cannot run program 'transfer'"
        raise FieldError("transport", message)


def check_training(case: Case) -> None:
    """Strategy and transport, batch, and whose compute it is."""
    communicates = case.plugin("strategy").communicates
    if communicates == (case.transport is None):
        silent = set(registry.plugins("strategy")) - set(registry.with_trait("strategy", "communicates"))
        requirement = "takes no transport" if case.transport else f"needs a transport; only {min(silent)!r} has none"
        raise FieldError("transport" if case.transport else "strategy", f"strategy {case.strategy!r} {requirement}")
    if case.buffers == "plain" and not case.plugin("strategy").collective_calls:
        message = f"strategy {case.strategy!r} chooses its buffers itself, by its mechanism; leave it out"
        raise FieldError("buffers", message)
    _minibatch_divides(case)
    unreal = [name for name in ("dilation", "shrink") if getattr(case, name) != 1]
    unreal += ["compute.profile"] if case.compute_options.profile is not None else []
    if unreal and not case.replayed:
        raise FieldError(unreal[0], "is for replayed compute: set compute: replay, or fabric: simulated")
    if case.compute_options.burns and case.dilation != 1:
        raise FieldError("dilation", "a core that burns for compute is no slower than the real one: leave it out")
    ours = case.plugin("collective").implementation is not None and case.plugin("strategy").collective_calls
    if case.compute_options.reduces is not None and not ours:
        message = "is of collectives of ours: choose one (collective: ring), and a strategy without servers"
        raise FieldError("compute.reduces", message)
    _other_nodes_fit(case)
    if case.faults is not None:
        check_faults(case)


def _minibatch_divides(case: Case) -> None:
    if case.shares == case.workers and case.minibatch % max(case.workers, 1):
        who = "ranks" if case.workers == case.ranks else "workers"
        raise FieldError("minibatch", f"{case.minibatch} does not divide over {case.workers} {who}")
    if case.replicas is None:
        for field in ("seconds", "evaluate_s", "step_delay", "message_delay", "faults"):
            if getattr(case, field) is not None:
                raise FieldError(field, f"strategy {case.strategy!r} is no program of each rank; leave it out")


def _other_nodes_fit(case: Case) -> None:
    if (others := case.compute_options.others) is None:
        return
    if not case.replayed or case.compute == "none":
        message = "nodes of other types are replayed or simulated: set compute: replay, or fabric: simulated"
        raise FieldError("compute.others", message)
    count = sum(each.count for each in other_nodes(others))
    if count >= case.nodes:
        message = f"{count} nodes of other types, and the case has {case.nodes}; leave at least one for compute.profile"
        raise FieldError("compute.others", message)
