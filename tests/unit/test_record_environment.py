"""What a record says of the machine and its network."""

from __future__ import annotations

from harness.record.counters import other_carrier, read_counters, sent
from harness.record.digest import code_digest, machine_id
from harness.record.environment import environment, load


def counters(**sent_bytes: int) -> dict[str, dict[str, int]]:
    return {name: {"rx_bytes": 0, "rx_packets": 0, "tx_bytes": count, "tx_packets": 0} for name, count in sent_bytes.items()}


def test_another_interface_than_the_requested_one_is_named() -> None:
    before = counters(lo=0, eth0=10)
    assert other_carrier("eth0", 10**7, before, counters(lo=10**7, eth0=20)) == "lo"
    assert other_carrier("eth0", 10**7, before, counters(lo=0, eth0=10**7)) is None
    assert other_carrier("eth0", 1000, before, counters(lo=10**7, eth0=20)) is None
    assert other_carrier("eth0", 10**7, before, counters(lo=5, eth0=20)) is None


def test_counters_of_this_machine() -> None:
    found = read_counters()
    assert found["lo"].keys() == {"rx_bytes", "rx_packets", "tx_bytes", "tx_packets"}
    assert set(sent(found, found).values()) == {0}


def test_variables_that_matter_are_kept_and_secrets_are_not() -> None:
    found = environment({"OMP_NUM_THREADS": "1", "HOME": "/root", "HOROVOD_SECRET_KEY": "x"})
    assert found["variables"] == {"OMP_NUM_THREADS": "1"}
    assert found["cores"] >= 1 and found["memory_mib"] > 0 and load()["load_1min"] >= 0


def test_digests_are_stable() -> None:
    assert code_digest() == code_digest() and len(code_digest()) == 16
    assert machine_id() == machine_id() and len(machine_id()) == 12
