"""The description of machine, libraries and code in a record."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

import pytest

from scaleproof.core.counters import read_counters, sent
from scaleproof.launch.start.execute import PADDING_MAX, padding
from scaleproof.record import difference
from scaleproof.record.cgroups import limits, memory_left, throttled
from scaleproof.record.digest import code_digest, machine_id
from scaleproof.record.environment import PADDING, environment, read_machine_load, size_bytes
from scaleproof.record.host import host
from scaleproof.record.libraries import identity, loaded_libraries


def test_counters_of_this_machine() -> None:
    counters = read_counters()
    assert counters["lo"].keys() == {"rx_bytes", "rx_packets", "tx_bytes", "tx_packets"}
    assert set(sent(counters, counters).values()) == {0}


def test_variables_that_matter_are_kept_and_secrets_are_not() -> None:
    variables = {"OMP_NUM_THREADS": "1", "HOME": "/root", "HOROVOD_SECRET_KEY": "x", PADDING: "xxx"}
    recorded = environment(variables)
    assert recorded["variables"] == {"OMP_NUM_THREADS": "1"} and recorded["padding_bytes"] == 3
    assert (
        recorded["variables_bytes"]
        == size_bytes(variables)
        == sum(len(f"{name}={value}") + 1 for name, value in variables.items())
    )
    assert recorded["cores"] >= 1 and recorded["memory_mib"] > 0 and read_machine_load()["load_1min"] >= 0


def test_what_cannot_be_read_is_none_and_named_with_its_reason() -> None:
    description = host()
    for name, value in description.items():
        assert value is not None or name in description["not_readable"], name
    assert all(reason for reason in description["not_readable"].values())
    assert description["kernel"] == platform.release() and description["cpu_flags"]


def test_library_versions_come_from_mapped_files_not_from_a_package_list() -> None:
    libraries = loaded_libraries()
    name, version = os.confstr("CS_GNU_LIBC_VERSION").split()  # type: ignore[union-attr]
    assert name == "glibc" and libraries["libc.so.6"].startswith(f"GLIBC_{version}, build ")
    assert not any("deleted" in value or "not readable" in value for value in libraries.values())


def test_a_build_id_is_that_of_the_file(tmp_path: Path) -> None:
    source, library = tmp_path / "a.c", tmp_path / "liba.so.3.1.4"
    source.write_text("int a(void) { return 1; }\n")
    build = subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,--build-id=0x00112233445566778899", "-o", library, source],
        capture_output=True,
        check=False,
    )
    if build.returncode:
        pytest.skip("needs gcc")
    assert identity(str(library)) == "3.1.4, build 0011223344556677"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no library", b"\x7fELF\x02\x01" + bytes(100)])
def test_an_unreadable_library_is_recorded_as_such_or_by_its_size(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "libbroken.so"
    path.write_bytes(content)
    assert (
        identity(str(path)).startswith("not readable: ") or identity(str(path)) == f"no version, {len(content)} bytes"
    )


def test_limits_of_a_control_group_version_2_are_the_tightest_on_the_way_up(tmp_path: Path) -> None:
    inner = tmp_path / "pod" / "container"
    inner.mkdir(parents=True)
    (tmp_path / "cgroup.controllers").write_text("cpu memory")
    (tmp_path / "pod" / "cpu.max").write_text("150000 100000")
    (inner / "cpu.max").write_text("max 100000")
    (tmp_path / "pod" / "memory.max").write_text("max")
    (inner / "memory.max").write_text("1000")
    (inner / "memory.current").write_text("400")
    (inner / "cpuset.cpus.effective").write_text("0-3")
    (inner / "cpu.stat").write_text("usage_usec 5\nnr_periods 9\nnr_throttled 2\nthrottled_usec 7000\n")
    (tmp_path / "pod" / "cpu.stat").write_text("nr_throttled 3\nthrottled_usec 900000\n")
    own = tmp_path / "self"
    own.write_text("0::/pod/container\n")
    assert limits(tmp_path, own) == {"version": 2, "cpu_max": 1.5, "memory_max": 1000, "cpuset": "0-3"}
    assert memory_left(tmp_path, own) == 600 and throttled(tmp_path, own) == {
        "times": 5,
        "us": 907_000,
        "most_us": 500_000,
    }


def test_limits_of_a_control_group_version_1(tmp_path: Path) -> None:
    for controller in ("cpu", "memory"):
        (tmp_path / controller / "job").mkdir(parents=True)
    (tmp_path / "cpu" / "job" / "cpu.cfs_quota_us").write_text("50000")
    (tmp_path / "cpu" / "job" / "cpu.cfs_period_us").write_text("100000")
    (tmp_path / "memory" / "job" / "memory.limit_in_bytes").write_text(str(2**62))
    own = tmp_path / "self"
    own.write_text("4:memory:/job\n1:cpu,cpuacct:/job\n")
    assert limits(tmp_path, own) == {"version": 1, "cpu_max": 0.5, "memory_max": None, "cpuset": "not readable"}


def test_padding_follows_from_the_seed_and_varies_between_launches() -> None:
    lengths = [len(padding(seed)) for seed in range(200)]
    assert lengths == [len(padding(seed)) for seed in range(200)]
    assert len(set(lengths)) > 150 and max(lengths) < PADDING_MAX and min(lengths) < PADDING_MAX // 8


def test_digests_are_stable() -> None:
    assert code_digest() == code_digest() and len(code_digest()) == 16
    assert machine_id() == machine_id() and len(machine_id()) == 12


def test_a_changed_tree_is_kept_once_with_secrets_masked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree, results = tmp_path / "tree", tmp_path / "results"
    (tree / "harness").mkdir(parents=True)
    (tree / "suites").mkdir()
    code = tree / "harness" / "a.py"
    code.write_text("speed = 1\n")
    for argv in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "a"],
    ):
        subprocess.run(["git", "-C", tree, *argv], check=True)
    monkeypatch.setattr(difference, "PROJECT", tree)
    monkeypatch.setattr(difference, "_PATHS", ("harness", "suites"))
    difference.difference.cache_clear()
    assert difference.write_difference(results) is None
    code.write_text("speed = 2\napi_key = 'abcdef'\n")
    (tree / "harness" / "new.py").write_text("x")
    difference.difference.cache_clear()
    try:
        kept = difference.write_difference(results)
        assert kept is not None and kept == difference.write_difference(results)
    finally:
        difference.difference.cache_clear()
    [path] = (results / "differences").iterdir()
    text = path.read_text()
    assert kept["file"] == f"differences/{path.name}" and path.name.startswith(kept["sha256"][:16])
    assert "+speed = 2" in text and "abcdef" not in text and "new file harness/new.py sha256" in text


def test_a_large_difference_is_cut() -> None:
    assert len(difference.masked("a" * (2 * difference.MOST_BYTES))) < difference.MOST_BYTES + 100
