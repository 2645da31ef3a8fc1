"""TensorFlow's own gRPC runtime as a reference: RING all-reduce, or a tensor moved between two servers. Run as `python
-m benchmarks.tensorflow_peer OPERATION --sizes BYTES...`.

Its servers accept any client and listen on every interface, so the processes run in a network namespace that has only a
loopback interface, and the congestion control that all other arms have.

The all-reduce is MultiWorkerMirroredStrategy's. Both ranks read TensorFlow's clock inside the graph, after a barrier,
and its input is a copy made before, which the ring may overwrite as it may a gradient: no copy and no call from Python
is in the time. As for every arm, the time of a call is that of its slowest rank."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.arms import ITERATIONS, SIZES, WARMUP
from benchmarks.network import congestion, own_network
from scaleproof.rank.process_lifetime import die_with_creator
from scaleproof.transports.tensorflow.tensorflow_mirrored import configure_context, context_config

ADDRESSES = ["127.0.0.1:20001", "127.0.0.1:20002"]
"""Free by construction: the namespace is new."""
TIMEOUT_S = 120
Seconds = dict[int, list[float]]
"""Of each timed call, by size in bytes."""


def main() -> None:
    """Print seconds per size: {size: s}; a transfer's time is one way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operation", choices=("all_reduce", "transfer"))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--piece-kib", type=int, default=4, help="of a RecvBuf answer; 4 is TensorFlow's default")
    parser.add_argument("--channels", type=int, default=1, help="connections to a server; 1 is TensorFlow's default")
    options = parser.parse_args()
    own_network(congestion())
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    bodies, measuring = ((ring, ring), 2) if options.operation == "all_reduce" else ((move, serve), 1)
    with tempfile.TemporaryDirectory() as folder:
        results = [Path(folder) / str(rank) for rank in range(2)]
        children = [fork(partial(body, rank, results[rank], options)) for rank, body in enumerate(bodies)]
        wait(children[:measuring], children)
        of_ranks = [json.loads(result.read_text()) for result in results if result.exists()]
    if len(of_ranks) < measuring:
        sys.exit(f"{len(of_ranks)} of {measuring} ranks measured {options.operation}")
    json.dump(medians(of_ranks), sys.stdout)


def medians(of_ranks: list[dict[str, list[float]]]) -> dict[str, float]:
    """Median over the calls, each with the time of its slowest rank."""
    return {
        size: statistics.median(max(calls) for calls in zip(*(rank[size] for rank in of_ranks), strict=True))
        for size in of_ranks[0]
    }


def configured(options: argparse.Namespace) -> Any:
    """TensorFlow with the options in the configuration of its context, which its server takes over. Nothing of
    TensorFlow may have run before."""
    import tensorflow as tf

    config = tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1)  # as many as every other arm has
    config.experimental.recv_buf_max_chunk = options.piece_kib << 10
    config.rpc_options.num_channels_per_target = options.channels
    configure_context(config)
    assert context_config().experimental.recv_buf_max_chunk == options.piece_kib << 10
    return tf


def ring(rank: int, result: Path, options: argparse.Namespace) -> None:
    """One worker of MultiWorkerMirroredStrategy; writes its own times."""
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ADDRESSES}, "task": {"type": "worker", "index": rank}})
    tf = configured(options)
    communication = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=communication)

    def reduce(value: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, tf.identity(value), options=communication
        )

    timed = partial(timed_all_reduce, tf, reduce)
    times: Seconds = {}
    for size in options.sizes:
        step = tf.function(lambda value: strategy.run(timed, args=(value,)))
        value = tf.ones(size // 4)
        times[size] = []
        for _ in range(WARMUP + ITERATIONS):
            seconds, first = step(value)
            assert float(first) == 2
            times[size].append(float(seconds))
    result.write_text(json.dumps({size: seconds[WARMUP:] for size, seconds in times.items()}))
    while not result.with_name(str(1 - rank)).exists():  # the peer may still fetch its last part from here
        time.sleep(0.01)


def timed_all_reduce(tf: Any, reduce: Callable[[Any], Any], value: Any) -> tuple[Any, Any]:
    """Nodes of the seconds that `reduce` takes on a copy of the value, and of the first element of the sum. The copy is
    made before the barrier, which precedes the first reading of the clock."""
    own = tf.raw_ops.DeepCopy(x=value)
    with tf.control_dependencies([own]):
        barrier = reduce(tf.zeros(1))
    with tf.control_dependencies([barrier]):
        start = tf.timestamp()
    with tf.control_dependencies([start]):
        summed = reduce(own)
    with tf.control_dependencies([summed]):
        return tf.timestamp() - start, summed[0]


def serve(rank: int, result: Path, options: argparse.Namespace) -> None:
    """The server from which rank 0 pulls; ended by a signal."""
    tf = configured(options)
    config = tf.compat.v1.ConfigProto()
    config.rpc_options.num_channels_per_target = options.channels
    tf.distribute.Server({"worker": ADDRESSES}, "worker", rank, protocol="grpc", config=config).join()


def move(rank: int, result: Path, options: argparse.Namespace) -> None:
    """Pull a variable of the other server; writes the times."""
    tf = configured(options)
    tf.config.experimental_connect_to_cluster(
        tf.train.ClusterSpec({"worker": ADDRESSES}), job_name="worker", task_index=rank
    )
    times: Seconds = {}
    for size in options.sizes:
        with tf.device("/job:worker/task:1/cpu:0"):
            source = tf.Variable(tf.ones(size // 4))

        @tf.function
        def pull(source: Any = source) -> Any:
            with tf.device("/job:worker/task:1/cpu:0"):
                value = source.read_value()
            with tf.device("/job:worker/task:0/cpu:0"):
                return tf.identity(value)

        times[size] = seconds_of(lambda pull=pull: pull()[0].numpy())  # type: ignore[misc]
    result.write_text(json.dumps(times))


def seconds_of(run: Callable[[], object]) -> list[float]:
    """Seconds of each call after warm-up."""
    times = []
    for _ in range(WARMUP + ITERATIONS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times[WARMUP:]


def fork(body: Callable[[], None]) -> int:
    """Run the body in a child that dies with this process."""
    creator = os.getpid()
    child = os.fork()
    if not child:
        code = 1
        try:
            die_with_creator(creator)
            body()
            code = 0
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            sys.stderr.flush()
            os._exit(code)
    return child


def wait(needed: list[int], children: list[int]) -> None:
    """Wait until the needed children have ended; then, or at the deadline, kill the others."""
    deadline, pending = time.monotonic() + TIMEOUT_S, set(needed)
    alive = set(children)
    while pending and time.monotonic() < deadline:
        ended = {child for child in alive if os.waitpid(child, os.WNOHANG)[0]}
        alive -= ended
        pending -= ended
        time.sleep(0.01)
    for child in alive:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
