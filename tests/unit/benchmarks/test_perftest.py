"""The raw rate of a verbs device is read from perftest's own table."""

from __future__ import annotations

from benchmarks.perftest import PEAK_AND_AVERAGE

PRINTED = """
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 1048576    64             81.25              79.40                0.000079
---------------------------------------------------------------------------------------
"""


def test_peak_and_average_of_a_run_are_read() -> None:
    match = PEAK_AND_AVERAGE.search(PRINTED)
    assert match is not None and match.groups() == ("81.25", "79.40")
