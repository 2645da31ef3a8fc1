"""The metrics of a suite: those of the harness and those that the suite adds in its models.py or models/."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.record.digest import rooms_digest
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown


def suite_metrics(folder: Path) -> dict[str, Metric]:
    """The harness's metrics and those that the suite adds: `METRICS`, a list of Metric, in its models.py or in the
    __init__.py of its package models/. SpecError when that cannot be imported, or defines a metric of the harness
    again."""
    path = models_file(folder)
    if path is None:
        return METRICS
    module = load_models(path)
    if not isinstance(getattr(module, "METRICS", None), list):
        raise SpecError(f"{shown(path)}: has no list METRICS of scaleproof.claims.metrics.Metric")
    added = {metric.name: metric for metric in module.METRICS}
    if repeated := sorted(added.keys() & METRICS.keys()):
        raise SpecError(f"{shown(path)}: metric {repeated[0]!r} is already one of the harness's; give it another name")
    return {**METRICS, **added}


def models_file(folder: Path) -> Path | None:
    """The file of a suite that has METRICS: models.py or models/__init__.py; None when the suite has neither.
    SpecError when it has both, or files in models/ without an __init__.py."""
    file, package = folder / "models.py", folder / "models"
    if (package / "__init__.py").exists():
        if file.exists():
            raise SpecError(f"{shown(folder)}: has both models.py and models/; keep one of them")
        return package / "__init__.py"
    if not file.exists() and any(package.glob("*.py")):
        raise SpecError(f"{shown(package)}: has no __init__.py with the list METRICS")
    return file if file.exists() else None


def load_models(path: Path) -> ModuleType:
    """Run a suite's models.py or models/__init__.py anew. Its name in `sys.modules` contains its path, so that suites
    never share a module. SpecError names the file that cannot be imported."""
    package = path.parent if path.name == "__init__.py" else None
    suite = package.parent if package else path.parent
    name = f"scaleproof_suite_{suite.name}_{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    for loaded in [module for module in sys.modules if module == name or module.startswith(f"{name}.")]:
        del sys.modules[loaded]
    importlib.invalidate_caches()
    locations = [str(package)] if package else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=locations)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and relative imports look it up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        failed = _failed_file(error, path)
        raise SpecError(f"{shown(failed)}: {type(error).__name__}: {error}") from error
    return module


def _failed_file(error: Exception, path: Path) -> Path:
    """The file of a models package whose line raised `error`; `path` for a single file."""
    if path.name != "__init__.py":
        return path
    files = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
    return next((file for file in reversed(files) if file.is_relative_to(path.parent)), path)


def suite_metrics_version(folder: Path) -> str:
    """Digest of the code that computes the values of `suite_metrics`: the packages that read records, and the suite's
    own files."""
    total = hashlib.sha256(rooms_digest("spec", "stats", "record", "claims").encode())
    for path in sorted(folder.rglob("*.py")):
        total.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return f"{folder.name}-{total.hexdigest()[:16]}"
