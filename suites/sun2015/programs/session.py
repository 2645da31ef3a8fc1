"""One application of Spark: its driver, and the moment at which all executors are there."""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suite_programs import map_reduce, rbm
from suite_programs.cluster import START_S, settings
from suite_programs.jvm import LONGEST_CAUSE, Jvm, SparkDidNotStart, is_setting, pause, spark_home


@contextmanager
def spark_context(
    address: str, token: str, folder: Path, master: str, executors: int, driver: tuple[Jvm, Path]
) -> Iterator[Any]:
    """A `pyspark.SparkContext` at a master's URL with so many executors. It is stopped at the end."""
    for name in [name for name in os.environ if is_setting(name)]:
        del os.environ[name]  # of the user's own Spark; the library reads some of them
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.cloudpickle import register_pickle_by_value
    from pyspark.java_gateway import launch_gateway

    for module in (map_reduce, rbm):  # Spark's processes do not have this folder
        register_pickle_by_value(module)
    jvm, told = driver
    port, secret = _told(jvm, told)
    os.environ |= {
        "SPARK_HOME": str(spark_home()),
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    try:
        conf = SparkConf(loadDefaults=False).setAll(list(settings(address, token, folder).items())).setMaster(master)
        spark = SparkContext(conf=conf, gateway=launch_gateway())
    except Py4JError as error:
        raise SparkDidNotStart(f"Spark's application did not start: {_one_line(error)}") from None
    try:
        _await_executors(spark, executors)
        yield spark
    finally:
        spark.stop()


def _told(jvm: Jvm, told: Path) -> tuple[int, str]:
    deadline = time.monotonic() + START_S
    while not told.exists():
        if jvm.process.poll() is not None:
            raise SparkDidNotStart(f"{jvm.name} did not start: {jvm.cause()}")
        if time.monotonic() > deadline:
            raise SparkDidNotStart(f"{jvm.name} did not start within {START_S:g} s")
        pause()
    content = told.read_bytes()
    port, length = struct.unpack_from(">ii", content)
    return port, content[8 : 8 + length].decode()


def _one_line(error: Exception) -> str:
    thrown = getattr(error, "java_exception", None)
    text = str(thrown.toString() if thrown is not None else error)
    return " ".join(text.split())[:LONGEST_CAUSE]


def _await_executors(spark: Any, executors: int) -> None:
    tracker = spark._jsc.sc().statusTracker()
    deadline = time.monotonic() + START_S
    while (found := len(tracker.getExecutorInfos()) - 1) < executors:  # the driver is one of them
        if time.monotonic() > deadline:
            raise SparkDidNotStart(f"{found} of {executors} executors of Spark have come within {START_S:g} s")
        pause()
