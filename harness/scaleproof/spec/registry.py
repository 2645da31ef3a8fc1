"""Names of everything that has one file, with lazy import paths, so that names are checked without importing anything."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from scaleproof.spec.errors import SpecError

Kind = Literal["transport", "collective", "strategy", "program", "fabric", "launcher", "workload", "framework"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered name: where its class is, what must be installed, and facts that checks need before any import."""

    target: str
    summary: str
    requires: tuple[str, ...] = ()
    point_to_point: bool = False
    launcher: str | None = None
    advice: str = "type `make env`"
    sends: bool = True
    """A transport with send and recv of its own; without them it cannot run program transfer."""
    one_sided: bool = False
    """A transport whose peers are devices with a memory: mechanisms other than `messages` need one."""
    probe: str = ""
    """A function that says why this installation of what is required does not do, empty where it does; it may import
    that."""
    pins_memory: bool = False
    """A transport that locks its buffers in memory: the limit `memlock` must allow it."""
    fuses: bool = False
    """A transport that fuses tensors itself where the case says `fusion_mib`."""
    one_node: bool = False
    """A transport through memory that ends at the node: in an allocation its cases stand on one, so that they can be
    arms beside others."""
    devices: str = ""
    """A folder of the kernel that has an entry for each device that the name needs."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a registered name can be used on this machine; if not, why and what to do."""

    kind: Kind
    name: str
    available: bool
    summary: str
    why: str = ""
    advice: str = ""


_TRANSPORTS = {
    "tcp": Entry("scaleproof.transports.tcp:Tcp", "our own: vectored, non-blocking sockets", point_to_point=True),
    "shm": Entry(
        "scaleproof.transports.shm.shm:SharedMemory",
        "our own: one-sided writes into shared regions",
        point_to_point=True,
        one_sided=True,
        one_node=True,
    ),
    "ucx": Entry(
        "scaleproof.transports.ucx.ucx:Ucx",
        "UCX's puts, gets and tagged messages, without CUDA",
        ("libucx",),
        point_to_point=True,
        one_sided=True,
    ),
    "grpc": Entry(
        "scaleproof.transports.grpc:Grpc", "our service over grpcio, streamed chunks", ("grpc",), point_to_point=True
    ),
    "rdma": Entry(
        "scaleproof.transports.verbs.rdma:Rdma",
        "our own: verbs, queue pairs over RoCE or InfiniBand",
        ("pyverbs",),
        point_to_point=True,
        one_sided=True,
        pins_memory=True,
        advice="type `apt-get install python3-pyverbs ibverbs-providers`, then `make env`",
        devices="/sys/class/infiniband",
    ),
    "gloo": Entry("scaleproof.transports.gloo:Gloo", "torch.distributed with the Gloo backend", ("torch",)),
    "nccl": Entry(
        "scaleproof.transports.nccl:Nccl",
        "torch.distributed with NCCL, arrays staged through a GPU a rank",
        ("torch",),
        advice="on a machine with a GPU for every rank install a torch with CUDA (https://pytorch.org/get-started); its wheels hold NCCL",
        probe="scaleproof.transports.nccl:why_not",
    ),
    "torch-mpi": Entry(
        "scaleproof.transports.torch_mpi:TorchMpi",
        "torch.distributed with MPI",
        ("torch",),
        launcher="mpirun",
        advice="build torch from source with USE_MPI=1 beside an Open MPI; without that use transport 'mpi'",
        probe="scaleproof.transports.torch_mpi:why_not",
    ),
    "ucc": Entry(
        "scaleproof.transports.ucc:Ucc",
        "torch.distributed with UCC",
        ("torch",),
        advice="build torch from source with USE_UCC=1 beside UCX and UCC; without that use transport 'ucx'",
        probe="scaleproof.transports.ucc:why_not",
    ),
    "mpi": Entry("scaleproof.transports.mpi:Mpi", "Open MPI through mpi4py", ("mpi4py",), launcher="mpirun"),
    "mpich": Entry(
        "scaleproof.transports.mpich:Mpich",
        "MPICH through mpi4py, in an environment of its own",
        launcher="mpich",
        advice="type `python3 -m tools.setup mpich`",
        probe="scaleproof.transports.mpich:why_not",
    ),
    "horovod": Entry(
        "scaleproof.transports.horovod.horovod:Horovod",
        "Horovod over Gloo, torch or TensorFlow binding",
        ("horovod",),
        sends=False,
        fuses=True,
    ),
    "grpc+mpi": Entry(
        "scaleproof.transports.grpc_plus.grpc_mpi:GrpcMpi",
        "gRPC asks, Open MPI delivers",
        ("grpc", "mpi4py"),
        True,
        launcher="mpirun",
    ),
    "grpc+shm": Entry(
        "scaleproof.transports.grpc_plus.grpc_shm:GrpcShm",
        "gRPC asks, one-sided writes into shared memory deliver",
        ("grpc",),
        point_to_point=True,
        one_node=True,
    ),
    "grpc+rdma": Entry(
        "scaleproof.transports.grpc_plus.grpc_rdma:GrpcRdma",
        "gRPC asks, one-sided RDMA writes deliver",
        ("grpc", "pyverbs"),
        point_to_point=True,
        pins_memory=True,
        advice="type `apt-get install python3-pyverbs ibverbs-providers`, then `make env`",
        devices="/sys/class/infiniband",
    ),
    "horovod-mpi": Entry(
        "scaleproof.transports.horovod.horovod_mpi:HorovodMpi",
        "Horovod over Open MPI",
        ("horovod", "mpi4py"),
        launcher="mpirun",
        sends=False,
        fuses=True,
    ),
    "tensorflow-grpc": Entry(
        "scaleproof.transports.tensorflow.tensorflow_grpc:TensorflowGrpc",
        "TensorFlow's own distributed runtime, ring over gRPC",
        ("tensorflow",),
    ),
    "tensorflow-mirrored": Entry(
        "scaleproof.transports.tensorflow.tensorflow_mirrored:TensorflowMirrored",
        "TensorFlow's MultiWorkerMirroredStrategy, RING over gRPC",
        ("tensorflow",),
        sends=False,
        fuses=True,
    ),
}
_COLLECTIVES = {
    "ring": Entry("scaleproof.collectives.ring", "ring reduce-scatter and all-gather"),
    "halving_doubling": Entry("scaleproof.collectives.halving_doubling", "recursive halving, recursive doubling"),
    "tree": Entry("scaleproof.collectives.tree", "binomial tree"),
    "hierarchical": Entry("scaleproof.collectives.hierarchical", "rings inside nodes and between them"),
}
_STRATEGIES = {
    "sync_overlap": Entry(
        "scaleproof.strategies.sync_overlap:SyncOverlap", "synchronous all-reduce in buckets during the backward pass"
    ),
    "sync": Entry("scaleproof.strategies.sync:Sync", "synchronous all-reduce in buckets after the backward pass"),
    "distributed_update": Entry(
        "scaleproof.strategies.distributed_update:DistributedUpdate",
        "part-reduce of gradients, step on the own part, part-broadcast",
    ),
    "hybrid": Entry(
        "scaleproof.strategies.hybrid:Hybrid",
        "fully connected layers divided inside groups of ranks, the distributed update between them",
    ),
    "parameter_server": Entry(
        "scaleproof.strategies.parameter_server:ParameterServer",
        "synchronous: servers sum gradients, step, give parameters back",
    ),
    "tensorflow_parameter_server": Entry(
        "scaleproof.strategies.tensorflow_parameter_server:TensorflowParameterServer",
        "the same in TensorFlow's own runtime: variables, accumulators and optimiser on its servers",
        ("tensorflow",),
    ),
    "local_only": Entry("scaleproof.strategies.local_only:LocalOnly", "no communication: the control arm"),
}
_PROGRAMS = {
    "transfer": Entry("scaleproof.programs.transfer:run", "point-to-point sweep over message sizes"),
    "collective": Entry("scaleproof.programs.collective:run", "sweep of one collective operation over sizes"),
    "train": Entry("scaleproof.programs.train:run", "training steps of a workload under a strategy"),
    "own": Entry("scaleproof.programs.own:run", "a suite's own program, from the suite's folder `programs`"),
}
_FABRICS = {
    "host": Entry("scaleproof.fabric.host:Host", "the network of this machine as it is"),
    "guests": Entry(
        "scaleproof.fabric.guests.guests:Guests",
        "nodes with a Linux kernel of their own, soft-RoCE, set rate and delay",
    ),
    "netns": Entry(
        "scaleproof.fabric.netns.netns:Netns", "nodes as network namespaces of this machine, set rates and delays"
    ),
    "simulated": Entry("scaleproof.fabric.simulated:Simulated", "no processes: the simulator predicts the record"),
}
_LAUNCHERS = {
    "local": Entry("scaleproof.launch.launchers.local:Local", "ranks forked from one parent on this machine"),
    "mpirun": Entry("scaleproof.launch.launchers.mpirun:Mpirun", "ranks started by Open MPI's mpirun", ("mpi4py",)),
    "mpich": Entry(
        "scaleproof.launch.launchers.mpich:Mpich",
        "ranks started by MPICH's mpiexec, in the environment that has it",
        advice="type `python3 -m tools.setup mpich`",
        probe="scaleproof.transports.mpich:why_not",
    ),
}
_WORKLOADS = {
    "vgg_a": Entry("scaleproof.workloads.vgg:vgg_a", "VGG-A, 3x224x224, 132.9 M parameters"),
    "overfeat_fast": Entry(
        "scaleproof.workloads.overfeat:overfeat_fast", "OverFeat-FAST, 3x231x231, 145.9 M parameters"
    ),
    "cd_dnn": Entry("scaleproof.workloads.dnn:cd_dnn", "CD-DNN, 429-2048x7-9304, 45.1 M parameters"),
    "vgg_digits": Entry("scaleproof.workloads.vgg:vgg_digits", "small VGG-style net for 8x8 digits"),
    "alexnet": Entry(
        "scaleproof.workloads.alexnet:alexnet", "AlexNet (slim v2), 3x224x224, 10 classes, 46.2 M parameters"
    ),
    "vgg16": Entry("scaleproof.workloads.vgg:vgg16", "VGG-16, 3x224x224, 10 classes, 134.3 M parameters"),
    "fcn5": Entry("scaleproof.workloads.dnn:fcn5", "FCN-5, 784-4096x4-10, 53.6 M parameters"),
    "lstm": Entry("scaleproof.workloads.recurrent:lstm", "LSTM 1024 to 1024 and softmax 1000, 9.4 M parameters"),
    "gru": Entry("scaleproof.workloads.recurrent:gru", "GRU 1024 to 1024 and softmax 1000, 7.3 M parameters"),
    "inception_v3": Entry(
        "scaleproof.workloads.inception:inception_v3",
        "Inception-v3 with auxiliary head, 3x299x299, 10 classes, 24.4 M parameters",
    ),
    "resnet50": Entry("scaleproof.workloads.resnet:resnet50", "ResNet-50, 3x224x224, 25.6 M parameters"),
    "mobilenet": Entry("scaleproof.workloads.mobilenet:mobilenet", "MobileNet, 3x224x224, 4.2 M parameters"),
    "mobilenet_v2": Entry("scaleproof.workloads.mobilenet:mobilenet_v2", "MobileNetV2, 3x224x224, 3.5 M parameters"),
    "nasnet_mobile": Entry("scaleproof.workloads.nasnet:nasnet_mobile", "NASNet-A mobile, 3x224x224, 5.3 M parameters"),
    "dnn_digits": Entry("scaleproof.workloads.dnn:dnn_digits", "small DNN-style net for 8x8 digits"),
    "cnn_digits": Entry(
        "scaleproof.workloads.convergence:cnn_digits", "small ReLU net with overlapping pooling for 8x8 digits"
    ),
    "seq2seq": Entry(
        "scaleproof.workloads.convergence:seq2seq", "small GRU encoder and decoder that learns to reverse sequences"
    ),
    "sentence_embedding": Entry(
        "scaleproof.workloads.convergence:sentence_embedding",
        "small mean of word vectors that learns the topic of sentences",
    ),
}
_FRAMEWORKS = {
    "torch": Entry("scaleproof.frameworks.torch.torch_model:TorchModel", "PyTorch, eager", ("torch",)),
    "tensorflow": Entry(
        "scaleproof.frameworks.tensorflow.tensorflow_model:TensorflowModel",
        "TensorFlow 2, compiled functions",
        ("tensorflow",),
    ),
}
TABLES: dict[Kind, dict[str, Entry]] = {
    "transport": _TRANSPORTS,
    "collective": _COLLECTIVES,
    "strategy": _STRATEGIES,
    "program": _PROGRAMS,
    "fabric": _FABRICS,
    "launcher": _LAUNCHERS,
    "workload": _WORKLOADS,
    "framework": _FRAMEWORKS,
}


def names(kind: Kind) -> list[str]:
    """Every registered name of a kind, in table order."""
    return list(TABLES[kind])


def nearest(name: str, candidates: list[str]) -> str:
    """Advice for a misspelt name: the nearest valid one, else all of them."""
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(candidates)


def entry(kind: Kind, name: str, also: tuple[str, ...] = ()) -> Entry:
    """The entry of a name; raises SpecError with the nearest valid name (`also`: names without an entry that are valid
    there)."""
    table = TABLES[kind]
    if name not in table:
        raise SpecError(f"unknown {kind} {name!r}; {nearest(name, [*also, *table])}")
    return table[name]


def load(kind: Kind, name: str) -> Any:
    """Import and return what a name stands for (a class, a function or a module)."""
    module_name, _, attribute = entry(kind, name).target.partition(":")
    module = importlib.import_module(module_name)
    return getattr(module, attribute) if attribute else module


def availability(kind: Kind, name: str, elsewhere: bool = False) -> Availability:
    """Whether the name's libraries are installed here, imported only by a `probe`, and its devices are there
    (`elsewhere`: where it runs has its own)."""
    found = entry(kind, name)
    missing = [module for module in found.requires if importlib.util.find_spec(module) is None]
    if missing:
        return Availability(
            kind, name, False, found.summary, f"Python package {', '.join(missing)} is not installed", found.advice
        )
    if found.devices and not elsewhere and not any(Path(found.devices).glob("*")):
        advice = (
            "fabric `guests` has soft-RoCE devices; on a machine with a card load its driver (`ibv_devices` lists it)"
        )
        return Availability(kind, name, False, found.summary, "no verbs device here", advice)
    if found.probe and (why := _probed(found.probe)):
        return Availability(kind, name, False, found.summary, why, found.advice)
    return Availability(kind, name, True, found.summary)


@cache
def _probed(probe: str) -> str:
    module_name, _, attribute = probe.partition(":")
    return str(getattr(importlib.import_module(module_name), attribute)())
