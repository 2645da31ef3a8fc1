"""The suite of a module of tests, which names it as SUITE, and its metrics."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.claims.metrics import Metric
from scaleproof.claims.suite_metrics import suite_metrics
from scaleproof.spec.suite import Suite, load_suite

SUITES = Path(__file__).resolve().parents[3] / "suites"


@pytest.fixture(scope="module")
def suite(request: pytest.FixtureRequest) -> Suite:
    return load_suite(request.module.SUITE, SUITES)


@pytest.fixture(scope="module")
def metrics(suite: Suite) -> dict[str, Metric]:
    return suite_metrics(suite.folder)
