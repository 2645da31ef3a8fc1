"""`python3 -m tools.setup mpich`: `.venv-mpich`, a small environment with MPICH in place of Open MPI. Both bring a
libmpi and an mpiexec, and every other MPI package of ours is built against Open MPI, so the two never share an
environment."""

from __future__ import annotations

import sys

from tools.build_horovod import build
from tools.setup import packages, run
from tools.setup.console import CommandError, SetupError, Steps, exit_code_of

VENV = run.ROOT / ".venv-mpich"
STAMP = VENV / ".scaleproof"
MPICH = packages.Pin("mpich", "5.0.2")
FROM_LOCK = (
    "annotated-types",
    "cloudpickle",
    "filelock",
    "fsspec",
    "jinja2",
    "joblib",
    "markupsafe",
    "mpi4py",
    "mpmath",
    "narwhals",
    "networkx",
    "numpy",
    "psutil",
    "pydantic",
    "pydantic-core",
    "pyyaml",
    "scikit-learn",
    "scipy",
    "setuptools",
    "sympy",
    "threadpoolctl",
    "torch",
    "typing-extensions",
    "typing-inspection",
)
"""What a rank imports, and what that needs: the versions of `.venv`, so that nothing but MPI differs."""
TRIAL = (
    "import torch, sklearn, pydantic, psutil, yaml; from mpi4py import MPI; "
    "assert MPI.COMM_WORLD.size == 2 and 'MPICH' in MPI.Get_library_version()"
)


def main(arguments: list[str]) -> int:
    """Entry point; the exit code."""
    if arguments:
        print(f"set-up: mpich takes no arguments, got {' '.join(arguments)!r}", file=sys.stderr)
        return 2
    return exit_code_of(set_up, "set-up")


def set_up() -> None:
    """Make `.venv`, which shares its wheels with this environment, then this one unless it is up to date."""
    run.set_up(False)
    locked = packages.read_lock(run.LOCK)
    pins = environment_pins(locked)
    stamp = "\n".join([str(VENV), *map(str, pins), ""])
    if STAMP.is_file() and STAMP.read_text() == stamp:
        return
    key = f"cp{sys.version_info.major}{sys.version_info.minor}-{packages.digest(run.LOCK)}"
    cache = run.Cache(key, build.wheel_key(locked, build.PATCH.read_bytes()))
    steps = Steps(2)
    with run.alone(cache.root / "lock", steps):
        steps.begin("download MPICH")
        packages.Wheels(cache.wheels, cache.python, cache.log).fetch(pins, steps, None)
        steps.end(str(MPICH))
        steps.begin("make .venv-mpich")
        python = packages.make_venv(VENV, cache.log)
        uv = cache.python.parent / "uv"
        packages.install(uv, python, [str(pin) for pin in pins], [cache.wheels], cache.unpacked, cache.log)
        packages.run([str(uv), "pip", "check", "--python", str(python)], cache.log)
        try:
            packages.run(
                [str(VENV / "bin" / "mpiexec"), "-launcher", "fork", "-n", "2", str(python), "-c", TRIAL], cache.log
            )
        except CommandError as error:
            raise SetupError(f"two ranks of MPICH do not start here; {cache.log} has the reason") from error
        STAMP.write_text(stamp)
        steps.end(str(VENV))


def environment_pins(locked: list[packages.Pin]) -> list[packages.Pin]:
    """The pins of the small environment; SetupError when the lock lacks one."""
    pins = [pin for pin in locked if pin.name in FROM_LOCK]
    if missing := set(FROM_LOCK) - {pin.name for pin in pins}:
        raise SetupError(f"requirements.lock has no {', '.join(sorted(missing))}")
    return [*pins, MPICH]
