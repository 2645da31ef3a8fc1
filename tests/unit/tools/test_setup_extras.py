"""Extras of suites: which are named, what a file may say, and which packages are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.setup import extras, machine, packages
from tools.setup.console import CommandError, SetupError

PINNED = 'why = "reads"\npackages = ["Some.Package==1.2", "other==3"]\n[system]\nnot-there = "no-such-command"\n'


def suite(folder: Path, name: str, text: str | None = None) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "suite.yaml").touch()
    path = folder / name / extras.FILE
    if text is not None:
        path.write_text(text)
    return path


def test_all_names_every_suite_with_extras_and_a_suite_without_has_none(tmp_path: Path) -> None:
    for name, text in (("b", PINNED), ("a", PINNED), ("plain", None)):
        suite(tmp_path, name, text)
    assert extras.suites_of(["all"], tmp_path) == ["a", "b"]
    assert extras.suites_of(["plain", "b"], tmp_path) == ["b"]


def test_an_unknown_suite_gets_the_nearest_name(tmp_path: Path) -> None:
    suite(tmp_path, "slide2020")
    with pytest.raises(SetupError, match="^unknown suite 'slide202'; did you mean 'slide2020'[?]$"):
        extras.suites_of(["slide202"], tmp_path)


def test_packages_are_missing_until_the_environment_has_their_version(tmp_path: Path) -> None:
    read = extras.read(suite(tmp_path, "mine", PINNED))
    assert read.suite == "mine" and [package.name for package in read.missing_system()] == ["not-there"]
    site_packages = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    (site_packages / "some_package-1.2.dist-info").mkdir(parents=True)
    (site_packages / "other-2.dist-info").mkdir()
    assert read.missing_pins(tmp_path / "venv") == [packages.Pin("other", "3")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('why = "w"\npackages = ["other>=3"]\n', "packages: 'other>=3' is not pinned; write name==version"),
        ('why = "w"\npakages = []\n', "unknown key 'pakages'; there are packages, system, why"),
        ("[system\n", "line 1"),
        ('packages = ["a==1"]\n[system]\nx = "x"\n', "no text 'why'; write what the suite does with these packages"),
        ('why = "w"\npackages = "a==1"\n', "packages: 'a==1' is no list; write ['name==version']"),
        ('why = "w"\npackages = [1]\n', "packages: 1 is not pinned; write name==version"),
        ('why = "w"\nsystem = "java"\n', "system: 'java' is no table; write [system] above its lines"),
        ('why = "w"\n[system]\nx = "java new"\n', "system: x = 'java new'; write a command of it, or 'command 17'"),
        ('why = "w"\n[system]\nx = 17\n', "system: x = 17; write a command of it, or 'command 17'"),
    ],
)
def test_a_mistake_is_one_line_with_the_file(tmp_path: Path, text: str, message: str) -> None:
    path = suite(tmp_path, "mine", text)
    with pytest.raises(SetupError) as raised:
        extras.read(path)
    assert str(raised.value).startswith(f"{path}: ") and message in str(raised.value)


def test_extras_of_this_project_do_not_change_what_the_lock_pins() -> None:
    locked = {pin.name for pin in packages.read_lock(extras.run.LOCK)}
    for name in extras.suites_with_extras(extras.SUITES):
        assert not locked & {pin.name for pin in extras.read(extras.SUITES / name / extras.FILE).pins}, name


# --- system packages, and what set-up does with stand-ins ---


def java(folder: Path, monkeypatch: pytest.MonkeyPatch, told: str) -> None:
    """A stand-in for Java that states a version, alone in PATH."""
    folder.mkdir(exist_ok=True)
    (folder / "java").write_text(f"#!/bin/sh\necho '{told}' >&2\n")
    (folder / "java").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


WITH_JAVA = 'why = "runs"\n[system]\nopenjdk-17-jre-headless = "java 17"\n'


@pytest.mark.parametrize(
    ("told", "missing"),
    [
        ('openjdk version "17.0.15" 2025-04-15', False),
        ('openjdk version "21" 2023-09-19', False),
        ('openjdk version "11.0.2" 2019-01-15', True),
        ('java version "1.8.0_412"', True),
        ("no Java at all", True),
    ],
)
def test_an_old_java_is_not_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, told: str, missing: bool
) -> None:
    read = extras.read(suite(tmp_path, "mine", WITH_JAVA))
    java(tmp_path / "bin", monkeypatch, told)
    assert [package.name for package in read.missing_system()] == ["openjdk-17-jre-headless"] * missing


def test_no_java_is_no_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.major_version("java") is None and not machine.has_version("java", 8)()


class Calls:
    """Stand-ins for what set-up calls: they note what they were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.made: list[object] = []
        self.site_packages = folder / "venv" / "lib" / "python3.11" / "site-packages"
        self.site_packages.mkdir(parents=True)
        self.command = folder / "bin" / "tool"
        self.command.parent.mkdir()
        self.works = True
        monkeypatch.setenv("PATH", str(self.command.parent))
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        (folder / "cache" / "scaleproof").mkdir(parents=True)
        monkeypatch.setattr(extras, "SUITES", folder / "suites")
        monkeypatch.setattr(extras.run, "VENV", folder / "venv")
        monkeypatch.setattr(extras.run, "set_up", lambda with_tests: self.made.append(("venv", with_tests)))
        monkeypatch.setattr(extras.run, "may_install", lambda: (True, True))
        monkeypatch.setattr(machine, "install_packages", self.install_system)
        monkeypatch.setattr(packages.Wheels, "fetch", lambda _, pins, *__: self.made.append(("wheels", pins)))
        monkeypatch.setattr(packages, "install", self.install)

    def install_system(self, missing: list[machine.SystemPackage], *_: object) -> None:
        self.made.append(("system", [package.name for package in missing]))
        if self.works:
            self.command.write_text("#!/bin/sh\n")
            self.command.chmod(0o755)

    def install(self, _uv: Path, _python: Path, pins: list[str], *_: object) -> None:
        self.made.append(("pins", pins))
        for name, version in (pin.split("==") for pin in pins if self.works):
            (self.site_packages / f"{name.replace('-', '_')}-{version}.dist-info").mkdir()


ONE = 'why = "reads"\npackages = ["Some.Package==1.2"]\n[system]\ntools = "tool"\n'


def test_set_up_installs_what_is_missing_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = Calls(monkeypatch, tmp_path)
    suite(tmp_path / "suites", "mine", ONE)
    extras.set_up(["mine"])
    pin = packages.Pin("some-package", "1.2")
    assert calls.made == [
        ("venv", False),
        ("system", ["tools"]),
        ("wheels", [pin]),
        ("pins", ["some-package==1.2"]),
    ]
    extras.set_up(["mine"])
    assert calls.made[4:] == [("venv", False)], "all is there"


def test_what_is_still_missing_after_its_installation_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = Calls(monkeypatch, tmp_path)
    calls.works = False
    suite(tmp_path / "suites", "mine", ONE)
    with pytest.raises(SetupError, match="^tools is installed, and another version of its command comes before it"):
        extras.set_up(["mine"])
    suite(tmp_path / "suites", "other", ONE.partition("[system]")[0])
    with pytest.raises(CommandError) as raised:
        extras.set_up(["other"])
    assert raised.value.output == f"some-package==1.2 is not in {tmp_path / 'venv'}"


def test_without_root_set_up_says_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = Calls(monkeypatch, tmp_path)
    monkeypatch.setattr(extras.run, "may_install", lambda: (False, True))
    suite(tmp_path / "suites", "mine", ONE)
    with pytest.raises(SetupError, match="only root can install them; type: sudo apt-get update .* tools$"):
        extras.set_up(["mine"])
    assert calls.made == [("venv", False)]


def test_only_extras_go_into_the_environment_in_use_which_is_not_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls = Calls(monkeypatch, tmp_path)
    suite(tmp_path / "suites", "mine", ONE)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "venv"))
    extras.set_up(["mine"], only=True)
    assert calls.made[0] == ("system", ["tools"]) and len(calls.made) == 3


def test_another_environment_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = Calls(monkeypatch, tmp_path)
    suite(tmp_path / "suites", "mine", ONE)
    monkeypatch.setattr("sys.prefix", str(tmp_path / "other"))
    with pytest.raises(SetupError, match="other is not the environment .* install --no-deps some-package==1.2$"):
        extras.set_up(["mine"], only=True)
    assert not calls.made
