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

from suite_programs.cluster import START_S, scratch, settings
from suite_programs.jvm import LONGEST_CAUSE, POLL_S, Jvm, SparkDidNotStart

from scaleproof.core.context import RankContext


@contextmanager
def spark_context(context: RankContext, master: str, executors: int, driver: tuple[Jvm, Path]) -> Iterator[Any]:
    """A `pyspark.SparkContext` at a master's URL with so many executors. It is stopped at the end."""
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    jvm, told = driver
    folder = scratch(context, "driver")
    port, secret = _told(jvm, told)
    os.environ |= {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": secret,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    try:
        conf = SparkConf(loadDefaults=False).setAll(list(settings(context, folder).items())).setMaster(master)
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
        if jvm.process.poll() is not None or time.monotonic() > deadline:
            raise SparkDidNotStart(f"{jvm.name} did not start: {jvm.cause()}")
        time.sleep(POLL_S)
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
        time.sleep(POLL_S)
