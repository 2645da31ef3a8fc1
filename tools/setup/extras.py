"""`python3 -m tools.setup extras SUITE ...`: packages that only one suite needs. Its file `extras.toml` pins them; they
are installed into `.venv` without resolving dependencies."""

from __future__ import annotations

import argparse
import difflib
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.build_horovod import build
from tools.setup import machine, packages, run
from tools.setup.console import CommandError, SetupError, Steps, exit_code_of

SUITES = run.ROOT / "suites"
FILE = "extras.toml"
ALL = "all"
KEYS = {"why", "packages", "system"}


@dataclass(frozen=True, slots=True)
class Extras:
    """What one suite needs beside `.venv`: pinned packages, and system packages."""

    suite: str
    pins: list[packages.Pin]
    system: list[machine.SystemPackage]

    def missing_pins(self, venv: Path) -> list[packages.Pin]:
        """Pins that the environment does not have in their version."""
        return [pin for pin in self.pins if not _installed(pin, venv)]

    def missing_system(self) -> list[machine.SystemPackage]:
        """System packages that are not installed."""
        return [package for package in self.system if not package.present()]


def main(arguments: list[str]) -> int:
    """Entry point; the exit code."""
    parser = argparse.ArgumentParser(
        prog="python3 -m tools.setup extras",
        description="Install what only some suites need into .venv, which is made first where it is missing.",
        epilog=f"Suites with extras: {', '.join(suites_with_extras(SUITES))}.",
    )
    parser.add_argument("suites", nargs="+", metavar="SUITE", help=f"a suite, or `{ALL}`")
    parser.add_argument("--only", action="store_true", help="neither make nor update .venv: it is in use")
    options = parser.parse_args(arguments)
    return exit_code_of(lambda: set_up(options.suites, options.only), "set-up")


def set_up(names: Sequence[str], only: bool = False) -> None:
    """Make `.venv`, then install the extras that these suites lack. With `only` they are installed into the environment
    of this Python, which has to be `.venv`. SetupError or CommandError on failure."""
    wanted = [read(SUITES / name / FILE) for name in suites_of(names, SUITES)]
    venv = Path(sys.prefix).resolve() if only else run.VENV
    if not only:
        run.set_up(False)
    lacking = [extras for extras in wanted if extras.missing_pins(venv) or extras.missing_system()]
    if not lacking:
        return
    if venv != run.VENV and (pins := [str(pin) for extras in lacking for pin in extras.missing_pins(venv)]):
        raise SetupError(
            f"{venv} is not the environment that set-up made; type: {sys.executable} -m pip install --no-deps "
            + " ".join(pins)
        )
    machine.need_packages([package for extras in lacking for package in extras.missing_system()], *run.may_install())
    locked = packages.read_lock(run.LOCK)
    key = f"cp{sys.version_info.major}{sys.version_info.minor}-{packages.digest(run.LOCK)}"
    cache = run.Cache(key, build.wheel_key(locked, build.PATCH.read_bytes()))
    steps = Steps(len(lacking))
    with run.alone(cache.root / "lock", steps):
        for extras in lacking:
            steps.begin(f"extras of {extras.suite}")
            _install(extras, cache, steps)
            steps.end(", ".join([*map(str, extras.pins), *(package.name for package in extras.system)]))


def suites_with_extras(folder: Path) -> list[str]:
    """Names of the suites that have extras, sorted."""
    return sorted(path.parent.name for path in folder.glob(f"*/{FILE}"))


def suites_of(names: Sequence[str], folder: Path) -> list[str]:
    """The named suites that have extras; `all` stands for every one. SetupError for a name that is no suite."""
    known = sorted(path.parent.name for path in folder.glob("[!_]*/suite.yaml"))
    for name in names:
        if name != ALL and name not in known:
            near = difflib.get_close_matches(name, [*known, ALL], 1)
            advice = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise SetupError(f"unknown suite {name!r}; {advice}")
    having = suites_with_extras(folder)
    return having if ALL in names else [name for name in having if name in names]


def read(path: Path) -> Extras:
    """The extras that a file describes; SetupError names a mistake in it."""
    try:
        content = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise SetupError(f"{path}: {error}") from error
    if unknown := sorted(content.keys() - KEYS):
        raise SetupError(f"{path}: unknown key {unknown[0]!r}; there are {', '.join(sorted(KEYS))}")
    if not isinstance(why := content.get("why"), str) or not why:
        raise SetupError(f"{path}: no text 'why'; write what the suite does with these packages")
    if not isinstance(texts := content.get("packages", []), list):
        raise SetupError(f"{path}: packages: {texts!r} is no list; write ['name==version']")
    if not isinstance(commands := content.get("system", {}), dict):
        raise SetupError(f"{path}: system: {commands!r} is no table; write [system] above its lines")
    pins = [_pin(path, text) for text in texts]
    return Extras(path.parent.name, pins, [_system(path, name, value, why) for name, value in commands.items()])


def _pin(path: Path, text: object) -> packages.Pin:
    name, _, version = text.partition("==") if isinstance(text, str) else ("", "", "")
    if not (name and version):
        raise SetupError(f"{path}: packages: {text!r} is not pinned; write name==version")
    return packages.Pin(packages.normal(name), version)


def _system(path: Path, name: str, value: object, why: str) -> machine.SystemPackage:
    """From a line of [system]: `package = "command"`, or `package = "command 17"` with the least major version."""
    match value.split() if isinstance(value, str) else []:
        case [command]:
            return machine.SystemPackage(name, machine.has_command(command), why)
        case [command, least] if least.isdecimal():
            return machine.SystemPackage(name, machine.has_version(command, int(least)), why)
    raise SetupError(f"{path}: system: {name} = {value!r}; write a command of it, or 'command 17' for a least version")


def _installed(pin: packages.Pin, venv: Path) -> bool:
    name = pin.name.replace("-", "_")
    return any(venv.glob(f"lib/python3.*/site-packages/{name}-{pin.version}.dist-info"))


def _install(extras: Extras, cache: run.Cache, steps: Steps) -> None:
    if missing := extras.missing_system():
        machine.install_packages(missing, cache.log, steps)
    if still_missing := extras.missing_system():
        name = still_missing[0].name
        raise SetupError(f"{name} is installed, and another version of its command comes before it in PATH")
    if not (pins := extras.missing_pins(run.VENV)):
        return
    packages.Wheels(cache.wheels, cache.python, cache.log).fetch(pins, steps, None)
    python = run.VENV / "bin" / "python"
    uv = cache.python.parent / "uv"
    packages.install(uv, python, [str(pin) for pin in pins], [cache.wheels], cache.unpacked, cache.log)
    if still := extras.missing_pins(run.VENV):
        raise CommandError([str(uv), "pip", "install", str(still[0])], 1, f"{still[0]} is not in {run.VENV}")
