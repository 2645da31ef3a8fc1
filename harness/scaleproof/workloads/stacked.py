"""The stacked model of a network: NumPy's where it can compute the network, else the framework's."""

from __future__ import annotations

from scaleproof.record.host import cores
from scaleproof.spec import registry
from scaleproof.spec.errors import FieldError
from scaleproof.spec.plugins import loaded
from scaleproof.workloads.networks import Network
from scaleproof.workloads.stacked_contract import StackedModel
from scaleproof.workloads.stacked_dense import DenseReplicas, is_dense


def stacked_model(network: Network, framework: str, threads: int = 1) -> StackedModel:
    """The network as a model of many replicas. Raises FieldError for a framework that has none and a network that
    NumPy cannot compute."""
    if is_dense(network):
        return DenseReplicas(network, max(threads, cores()))  # each row by itself: the threads change no bit
    path = registry.get("framework", framework).stacked
    if not path:
        able = [name for name in registry.names("framework") if registry.get("framework", name).stacked]
        raise FieldError("framework", f"framework {framework!r} has no model of many replicas; use {' or '.join(able)}")
    model: StackedModel = loaded(path)(network, threads)
    return model
