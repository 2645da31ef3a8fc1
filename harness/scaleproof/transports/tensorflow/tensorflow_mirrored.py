"""tf.distribute.MultiWorkerMirroredStrategy with a worker per rank and RING over gRPC: the operations of
its replicas on gradients, callable from any program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from scaleproof.spec.plugins import FusionOptions, TransportPlugin
from scaleproof.transports._buffers import as_bytes
from scaleproof.transports.contract import Array, Handle, ReduceOperation
from scaleproof.transports.tensorflow.session_server import CHUNK
from scaleproof.transports.tensorflow.tensorflow_collectives import Call, Collective, TensorflowCollectives
from scaleproof.transports.tensorflow.tensorflow_server import JOB, TensorflowServer

if TYPE_CHECKING:
    from scaleproof.core.context import RankContext

MIB = 1 << 20
WORD = np.dtype(np.int32)
"""A broadcast's bytes travel in these: adding zeros to integers changes no bit."""


class TensorflowMirrored(TensorflowCollectives):
    """Collectives only. With `fusion_mib` all calls that are under way go into one all-reduce of the replica context,
    which packs them as the class does."""

    NAME = "tensorflow-mirrored"

    def __init__(self, context: RankContext) -> None:
        fusion = context.case.value("transport.fusion_mib")
        self._fuses = fusion is not None
        self._waiting: list[_WaitingTensor] = []
        # To the class 0 bytes mean a single pack of any size; 1 byte means no packing, since every tensor is larger.
        self._worker = StrategyWorker(context, bytes_per_pack=max(int((fusion or 0) * MIB), 1) if self._fuses else 0)
        super().__init__(context, self._worker)

    @classmethod
    def connect(cls, context: RankContext) -> Self:
        """See Transport.connect. Before anything else of TensorFlow is used in this process."""
        return cls(context)

    def _set_up(self, context: RankContext) -> None:
        self._facts = {"tensors": 0, "all_reduces": 0}
        if self._fuses:
            context.facts["fusion"] = self._facts

    def _collective(self, kind: Collective, buffer: Array) -> Array:
        [result] = self._worker.call(kind, [buffer], fixed=False)
        return result

    def all_reduce(self, buffer: Array, operation: ReduceOperation = "sum") -> Handle:
        """See Collectives.all_reduce."""
        if not self._fuses or operation != "sum" or self.world_size == 1 or buffer.size == 0:
            return super().all_reduce(buffer, operation)
        self._check(buffer)
        self.traffic.count(buffer.nbytes)
        self._waiting.append(_WaitingTensor(self, buffer))
        return self._waiting[-1]

    def broadcast(self, buffer: Array, root: int = 0) -> Handle:
        """See TensorflowCollectives.broadcast; an all-reduce of the root's bits and zeros: the class broadcasts from
        worker 0 only, to new variables."""
        payload = np.zeros(-(-buffer.nbytes // WORD.itemsize), WORD)
        if self.rank == root:
            payload.view(np.uint8)[: buffer.nbytes] = as_bytes(buffer)

        def copy(result: Array) -> None:
            np.copyto(as_bytes(buffer), result.view(np.uint8)[: buffer.nbytes])

        return self._start(
            "broadcast",
            buffer,
            buffer.nbytes if self.rank == root else 0,
            lambda: self._collective("sum", payload),
            copy,
        )

    def flush(self) -> None:
        """Start one all-reduce of all tensors that wait for it."""
        # In the network's order, as a training loop has gradients; the class reverses it. Strategies submit the last
        # layer first.
        waiting, self._waiting = self._waiting[::-1], []
        if not waiting:
            return
        buffers = [each.buffer for each in waiting]

        def call() -> list[Array]:
            results = self._worker.call("sum", buffers, fixed=True)
            if len(buffers) > self._facts["tensors"]:
                self._facts |= {"tensors": len(buffers), "all_reduces": self._worker.all_reduces("sum", buffers)}
            return results

        def copy(results: Sequence[Array]) -> None:
            for buffer, result in zip(buffers, results, strict=True):
                np.copyto(buffer, result)

        self._post.begin_call("all_reduce")
        shared = Call(self._post, self._submit("collectives", call), copy)
        for each in waiting:
            each.call = shared

    def _start(
        self, name: str, buffer: Array, nbytes: int, call: Callable[[], Any], then: Callable[[Array], None]
    ) -> Handle:
        self.flush()
        return super()._start(name, buffer, nbytes, call, then)


class _WaitingTensor:
    """Handle of a tensor that shares its all-reduce with those submitted before the first of them is tested or
    awaited."""

    def __init__(self, transport: TensorflowMirrored, buffer: Array) -> None:
        self._transport, self.buffer = transport, buffer
        self.call: Call | None = None

    def test(self) -> bool:
        return self._call().test()

    def wait(self) -> None:
        self._call().wait()

    def _call(self) -> Call:
        if self.call is None:
            self._transport.flush()
        assert self.call is not None
        return self.call


def configure_context(config: Any) -> None:
    """Gives TensorFlow's context a session configuration, which the strategy's server takes over: the class itself
    takes none. Before anything else of TensorFlow has run in this process."""
    from tensorflow.python.framework import ops

    # The public function of TensorFlow 1 ignores its configuration where eager execution is the default.
    ops.enable_eager_execution_internal(config)


def context_config() -> Any:
    """The configuration of TensorFlow's context as it is in use."""
    from tensorflow.python.eager import context

    return context.context().config


class StrategyWorker(TensorflowServer):
    """The strategy of this rank's worker, and functions that run in its replica context."""

    def __init__(self, context: RankContext, bytes_per_pack: int) -> None:
        self._bytes_per_pack = bytes_per_pack
        self._functions: dict[Any, Any] = {}
        super().__init__(context)

    def call(self, kind: Collective, buffers: Sequence[Array], fixed: bool) -> list[Array]:
        """One call of all replicas; blocks. `fixed`: compile for these sizes, which the class needs to pack tensors."""
        with self.calling():
            function = self._function(kind, buffers, fixed)
            # A view of the tensor's memory.
            return [
                np.asarray(memoryview(result))
                for result in function(*(self.tf.convert_to_tensor(buffer) for buffer in buffers))
            ]

    def all_reduces(self, kind: Collective, buffers: Sequence[Array]) -> int:
        """Number of collectives that the class makes for tensors of these sizes."""
        operations = self._function(kind, buffers, True).graph.get_operations()
        return sum(operation.type == "CollectiveReduceV2" for operation in operations)

    def _serve(self, cluster_spec: Any) -> None:
        tf = self.tf
        config = tf.compat.v1.ConfigProto()
        config.experimental.recv_buf_max_chunk = CHUNK
        configure_context(config)
        # As the models set them; they cannot be changed once TensorFlow's context exists.
        tf.config.threading.set_intra_op_parallelism_threads(self.threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            cluster_spec, task_type=JOB, task_id=self.rank, rpc_layer="grpc"
        )
        options = tf.distribute.experimental.CommunicationOptions(
            bytes_per_pack=self._bytes_per_pack,
            implementation=tf.distribute.experimental.CommunicationImplementation.RING,
        )
        self._strategy = tf.distribute.MultiWorkerMirroredStrategy(
            cluster_resolver=resolver, communication_options=options
        )

    def _tuning(self) -> dict[str, Any]:
        return {
            "recv_buf_max_chunk_bytes": context_config().experimental.recv_buf_max_chunk,
            "num_channels_per_target": 1,
            "compression": "none",
            "inter_op_threads": 1,
            "implementation": "RING",
            "bytes_per_pack": self._bytes_per_pack or "all of a call",
        }

    def _function(self, kind: Collective, buffers: Sequence[Array], fixed: bool) -> Any:
        """Compiled once for each kind and number of tensors, and for each size if `fixed`."""
        sizes = tuple((buffer.dtype.name, buffer.size if fixed else None) for buffer in buffers)
        if (kind, sizes) not in self._functions:
            specifications = [self.tf.TensorSpec([size], dtype) for dtype, size in sizes]
            function = self.tf.function(lambda *values: self._strategy.run(self._replica, (kind, values)))
            self._functions[kind, sizes] = function.get_concrete_function(*specifications)
        return self._functions[kind, sizes]

    def _replica(self, kind: Collective, values: Sequence[Any]) -> list[Any]:
        """What each worker's replica does. `identity`, because the class reads the device of its inputs, and an
        argument of a function has none."""
        tf = self.tf
        replica, own = tf.distribute.get_replica_context(), [tf.identity(value) for value in values]
        if kind == "sum":
            return list(replica.all_reduce(tf.distribute.ReduceOp.SUM, own))
        if kind == "gather":
            return list(replica.all_gather(own, axis=0))
        # The class reduces by sum and mean only.
        return [
            tf.reduce_max(gathered, axis=0)
            for gathered in replica.all_gather([value[tf.newaxis] for value in own], axis=0)
        ]


PLUGIN = TransportPlugin(
    name="tensorflow-mirrored",
    summary="TensorFlow's MultiWorkerMirroredStrategy, RING over gRPC",
    implementation=TensorflowMirrored,
    requires=("tensorflow",),
    needs_framework="tensorflow",
    options=FusionOptions,
    axis="gRPC",
    sends=False,
    no_mailbox="it has no sends and receives",
    stated_costs="tensorflow_mirrored.costs.yaml",
)
