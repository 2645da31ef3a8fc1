"""The kernels of guests: their cache key, errors of a build, its resumption, and the content of the archive for
QEMU."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from scaleproof.fabric.guests import guest_kernels
from tools.build_guest_kernel import stock, uml
from tools.setup import guests, machine
from tools.setup import run as setup
from tools.setup.console import CommandError, SetupError, Steps


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and an existing source package."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "source.tar.xz").touch()
    monkeypatch.setattr(uml, "SOURCE", tmp_path / "source.tar.xz")
    monkeypatch.setattr(uml.shutil, "which", lambda name: f"/usr/bin/{name}")
    return tmp_path


def quiet() -> Steps:
    return Steps(1, io.StringIO())


@pytest.mark.parametrize("part", ["CONFIG", "PATCH"])
def test_another_configuration_or_patch_is_another_kernel(cache, monkeypatch, part):
    other = cache / "other"
    other.write_bytes(getattr(guest_kernels, part).read_bytes() + b"# more\n")
    key = uml.key()
    (guest_kernels.folder() / key).mkdir(parents=True)
    (guest_kernels.folder() / key / "linux").touch()
    assert guest_kernels.uml() is not None
    monkeypatch.setattr(guest_kernels, part, other)
    assert uml.key() != key
    assert guest_kernels.uml() is None


def test_the_kernel_built_last_counts_where_the_compiler_changed(cache):
    for number, compiler in enumerate(("gcc13", "gcc12")):
        path = guest_kernels.folder() / f"uml-{guest_kernels.digest()}-6.1-{compiler}" / "linux"
        path.parent.mkdir(parents=True)
        path.touch()
        os.utime(path, (number, number))
    kernel = guest_kernels.uml()
    assert kernel is not None
    assert kernel.parent.name.endswith("gcc12")


def test_what_a_build_lacks_is_one_line_to_type(cache, monkeypatch):
    monkeypatch.setattr(uml.shutil, "which", lambda name: None if name == "flex" else name)
    with pytest.raises(SetupError, match="needs flex; type: apt-get install .* flex bison bc gcc make xz-utils$"):
        uml.build_uml(cache / "log", quiet())


def test_a_build_is_kept_whole_and_its_folder_removed(cache, monkeypatch):
    def compile_(work, _log, _steps):
        work.mkdir(parents=True)
        (work / "linux").write_text("kernel")
        return work / "linux"

    monkeypatch.setattr(uml, "_compile", compile_)
    assert uml.build_uml(cache / "log", quiet()).read_text() == "kernel"
    assert [path.name for path in guest_kernels.folder().iterdir()] == [uml.key()]


def test_a_build_that_cannot_go_on_starts_once_more_from_nothing(cache, monkeypatch):
    attempts = []

    def compile_(work, _log, _steps):
        attempts.append((work / "configured").exists())
        if attempts[-1]:
            raise CommandError(["make"], 2, "half an object file")
        work.mkdir(parents=True)
        (work / "linux").touch()
        return work / "linux"

    monkeypatch.setattr(uml, "_compile", compile_)
    work = guest_kernels.folder() / f"build-{uml.key()}"
    work.mkdir(parents=True)
    (work / "configured").touch()
    uml.build_uml(cache / "log", quiet())
    assert attempts == [True, False]


def test_an_option_that_the_source_does_not_take_is_named(tmp_path):
    lines = guest_kernels.CONFIG.read_text().splitlines()
    (tmp_path / ".config").write_text("\n".join(line for line in lines if "RDMA_RXE" not in line))
    with pytest.raises(SetupError, match="does not take CONFIG_RDMA_RXE=y of"):
        uml._check(tmp_path / ".config")


def test_only_tests_stop_without_guests(cache, monkeypatch):
    monkeypatch.setattr(guests, "build_uml", lambda *_: (_ for _ in ()).throw(SetupError("offline")))
    out = io.StringIO()
    setup._guests(False, setup.Cache("k", "h"), Steps(1, out))
    assert "fabric guests is not runnable: offline" in out.getvalue()
    with pytest.raises(SetupError, match="offline"):
        setup._guests(True, setup.Cache("k", "h"), quiet())


def test_packages_for_guests_stop_only_tests(monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda name: None if name == "bison" else name)
    assert "bison" not in [package.name for package in machine.missing_packages(with_tests=False)]
    assert "bison" in [package.name for package in machine.missing_packages(with_tests=True)]
    assert "bison" in [package.name for package in machine.missing_tools()]


def test_pyverbs_is_the_one_folder_of_debians_python(tmp_path, monkeypatch):
    import sys

    site_packages = tmp_path / f"venv/lib/python3.{sys.version_info.minor}/site-packages"
    site_packages.mkdir(parents=True)
    monkeypatch.setattr(guests, "PYVERBS", tmp_path / "absent")
    assert not guests.link_pyverbs(tmp_path / "venv")
    (tmp_path / "debian").mkdir()
    monkeypatch.setattr(guests, "PYVERBS", tmp_path / "debian")
    assert guests.link_pyverbs(tmp_path / "venv")
    assert guests.link_pyverbs(tmp_path / "venv")
    assert os.readlink(site_packages / "pyverbs") == str(tmp_path / "debian")


def module(folder: Path, name: str, depends: str) -> None:
    (folder / "kernel").mkdir(exist_ok=True)
    (folder / "kernel" / f"{name}.ko").write_bytes(b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0")


def test_modules_load_after_what_they_depend_on_and_built_in_ones_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(stock, "MODULES", ("overlay", "rdma_rxe"))
    module(tmp_path, "rdma-rxe", "ib-core,udp_tunnel")
    module(tmp_path, "ib-core", "")
    module(tmp_path, "udp_tunnel", "ib-core")
    (tmp_path / "modules.builtin").write_text("kernel/fs/overlay.ko\n")
    assert [path.stem for path in dict.fromkeys(stock._with_dependencies(tmp_path))] == [
        "ib-core",
        "udp_tunnel",
        "rdma-rxe",
    ]
    monkeypatch.setattr(stock, "MODULES", ("absent",))
    with pytest.raises(SetupError, match="no module absent"):
        list(stock._with_dependencies(tmp_path))
