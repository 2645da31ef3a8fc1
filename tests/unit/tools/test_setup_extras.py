"""Extras of suites: which are named, what a file may say, and which packages are missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.setup import extras, packages
from tools.setup.console import SetupError

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
