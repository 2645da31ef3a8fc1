"""Spark's standalone cluster: a master on rank 0, a worker with one core on every rank, each on its rank's address."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from suite_programs.jvm import QUIET, Jvm, start, with_archive
from suite_programs.map_reduce import PLACE

from scaleproof.core.context import RankContext

START_S = 60.0
"""The longest that a process of Spark may take to start; well below the `stall_s` of suite.yaml."""
EXECUTOR_MIB = 512
WORKER_MIB = 768
"""What a worker may give to executors: one of them."""
MASTER_PORT = r"Successfully started service 'sparkMaster' on port (\d+)"


def environment_of(address: str) -> dict[str, str]:
    """Of all of Spark's processes: they bind to this address alone."""
    return {"SPARK_LOCAL_IP": address, "SPARK_LOCAL_HOSTNAME": address, "SPARK_PUBLIC_DNS": address}


def properties(folder: Path, token: str) -> Path:
    """A file with settings of master and worker. Who does not know the launch's token is refused."""
    path = folder / "spark.properties"
    settings = {"spark.authenticate": "true", "spark.authenticate.secret": token, "spark.port.maxRetries": "0"}
    path.touch(mode=0o600)
    path.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
    return path


def scratch(context: RankContext, name: str) -> Path:
    """A folder of this rank for logs and spilled data, on disk: the launch's own is removed at its end."""
    folder = context.folder / f"spark-{name}-{context.rank}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def start_master(address: str, token: str, folder: Path, port: int = 0) -> tuple[Jvm, str]:
    """The process, and the URL at which it answers. `port`: 0 takes a free one."""
    main = ["org.apache.spark.deploy.master.Master", "--host", address, "--port", str(port), "--webui-port", "0"]
    main += ["--properties-file", str(properties(folder, token))]
    master = start("Spark's master", main, folder, environment_of(address))
    master.at = f" at {address}:{port}" if port else f" at {address}"
    return master, f"spark://{address}:{master.awaited(MASTER_PORT, START_S)}"


def start_worker(address: str, token: str, folder: Path, master: str, rank: int) -> Jvm:
    """A worker that offers one core to the master. Its processes know its rank."""
    main = ["org.apache.spark.deploy.worker.Worker", "--host", address, "--port", "0", "--webui-port", "0"]
    main += ["--cores", "1", "--memory", f"{WORKER_MIB}m", "--work-dir", str(folder)]
    main += ["--properties-file", str(properties(folder, token)), master]
    own = {"SPARK_LOCAL_DIRS": str(folder), PLACE: str(rank)}
    return start("Spark's worker", main, folder, environment_of(address) | own)


def settings(address: str, token: str, folder: Path) -> dict[str, str]:
    """Of an application at an address, with logs and spilled data in `folder`. Executors have Java's own compiler and
    collector. Shuffled bytes are not compressed, so that they can be counted by a formula; tasks do not wait
    for a place near their data, and what a lost worker held is asked for again after 1 s in place of 5."""
    of = {
        "spark.app.name": "sun2015",
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.driver.port": "0",
        "spark.blockManager.port": "0",
        "spark.authenticate": "true",
        "spark.authenticate.secret": token,
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder),
        "spark.locality.wait": "0s",
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.broadcast.compress": "false",
        "spark.shuffle.io.retryWait": "1s",
        "spark.executor.memory": f"{EXECUTOR_MIB}m",
        "spark.executor.cores": "1",
        "spark.executor.extraJavaOptions": with_archive(QUIET),
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    return of | {"spark.master.rest.enabled": "false", "spark.python.worker.reuse": "true"}


def start_gateway(address: str, folder: Path, flags: Sequence[str] = ()) -> tuple[Jvm, Path]:
    """The driver's process, and the file in which it will tell its port and secret."""
    told = folder / "gateway"
    main = ["org.apache.spark.api.python.PythonGatewayServer"]
    own = {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(told), "SPARK_CONNECT_MODE": "0"}
    return start("Spark's driver", main, folder, environment_of(address) | own, "512m", flags), told
