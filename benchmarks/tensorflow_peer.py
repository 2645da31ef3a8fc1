"""TensorFlow's own gRPC runtime as a reference: RING all-reduce, and a tensor moved between two servers. Run as `python
-m benchmarks.tensorflow_peer`.

Its servers accept any client and listen on every interface, so the processes run in a network namespace that has only a
loopback interface."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import signal
import socket
import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.arms import SIZES
from scaleproof.rank.process_lifetime import die_with_creator

ITERATIONS = 6
WARMUP = 2
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
ADDRESSES = ["127.0.0.1:20001", "127.0.0.1:20002"]
"""Free by construction: the namespace is new."""
TIMEOUT_S = 120


def main() -> None:
    """Print seconds per size: {"all_reduce": {size: s}, "transfer": {size: s}}; a transfer's time is one way."""
    own_network()
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result"
        seconds = {}
        for operation, ranks in (("all_reduce", (ring, ring)), ("transfer", (move, serve))):
            children = [fork(partial(body, rank, result)) for rank, body in enumerate(ranks)]
            wait(children[: 2 if operation == "all_reduce" else 1], children)
            seconds[operation] = json.loads(result.read_text())
    json.dump(seconds, sys.stdout)


def ring(rank: int, result: Path) -> None:
    """One worker of MultiWorkerMirroredStrategy; rank 0 writes the medians."""
    os.environ["TF_CONFIG"] = json.dumps({"cluster": {"worker": ADDRESSES}, "task": {"type": "worker", "index": rank}})
    import tensorflow as tf

    one_thread(tf)
    options = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)

    def reduce(value: Any) -> Any:
        return tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, tf.identity(value), options=options
        )

    times = {}
    for size in SIZES:
        step = tf.function(lambda value: strategy.run(reduce, args=(value,)))
        value = tf.ones(size // 4)
        times[size] = median_seconds(lambda step=step, value=value: float(step(value)[0]))  # type: ignore[misc]
    if rank == 0:
        result.write_text(json.dumps(times))


def serve(rank: int, result: Path) -> None:
    """The server from which rank 0 pulls; ended by a signal."""
    import tensorflow as tf

    tf.distribute.Server({"worker": ADDRESSES}, "worker", rank, protocol="grpc").join()


def move(rank: int, result: Path) -> None:
    """Copy a variable of the other server into a local one; writes the medians."""
    import tensorflow as tf

    one_thread(tf)
    tf.config.experimental_connect_to_cluster(
        tf.train.ClusterSpec({"worker": ADDRESSES}), job_name="worker", task_index=rank
    )
    times = {}
    for size in SIZES:
        with tf.device("/job:worker/task:1/cpu:0"):
            source = tf.Variable(tf.ones(size // 4))
        with tf.device("/job:worker/task:0/cpu:0"):
            destination = tf.Variable(tf.zeros(size // 4))

        @tf.function
        def pull(source: Any = source, destination: Any = destination) -> Any:
            with tf.device("/job:worker/task:1/cpu:0"):
                value = source.read_value()
            with tf.device("/job:worker/task:0/cpu:0"):
                destination.assign(value)
                return destination[0]

        times[size] = median_seconds(lambda pull=pull: float(pull()))  # type: ignore[misc]
    result.write_text(json.dumps(times))


def median_seconds(run: Callable[[], object]) -> float:
    """Median over iterations after warm-up."""
    times = []
    for _ in range(WARMUP + ITERATIONS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times[WARMUP:])


def one_thread(tf: Any) -> None:
    """As many threads per rank as the harness gives to every other arm."""
    tf.config.threading.set_intra_op_parallelism_threads(1)


def own_network() -> None:
    """Enter a new network namespace and bring its loopback up; OSError where the kernel does not allow it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) and libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespace of one's own")
    with socket.socket() as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


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
