"""The metrics of a suite: those of the harness and those that the suite adds in its models.py."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from pathlib import Path

from scaleproof.claims.metrics import METRICS, Metric
from scaleproof.record.digest import rooms_digest
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import shown


def suite_metrics(folder: Path) -> dict[str, Metric]:
    """The harness's metrics and those that the suite's models.py adds (`METRICS`, a list of Metric). SpecError when
    models.py cannot be imported, or defines a metric of the harness again."""
    path = folder / "models.py"
    if not path.exists():
        return METRICS
    spec = importlib.util.spec_from_file_location(f"scaleproof_suite_{folder.name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SpecError(f"{shown(path)}: {type(error).__name__}: {error}") from error
    if not isinstance(getattr(module, "METRICS", None), list):
        raise SpecError(f"{shown(path)}: has no list METRICS of scaleproof.claims.metrics.Metric")
    own = {metric.name: metric for metric in module.METRICS}
    if twice := sorted(own.keys() & METRICS.keys()):
        raise SpecError(f"{shown(path)}: metric {twice[0]!r} is already one of the harness's; give it another name")
    return {**METRICS, **own}


def suite_metrics_version(folder: Path) -> str:
    """Digest of the code that computes the values of `suite_metrics`: the packages that read records, and the suite's
    own files."""
    total = hashlib.sha256(rooms_digest("spec", "stats", "record", "claims").encode())
    for path in sorted(folder.rglob("*.py")):
        total.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return f"{folder.name}-{total.hexdigest()[:16]}"
