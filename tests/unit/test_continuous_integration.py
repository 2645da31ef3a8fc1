"""The workflow that runs our own tests on GitHub is valid and has the same steps as .ci/run."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft7Validator

ROOT = Path(__file__).parents[2]
NOT_OURS = {
    "What a clone needs before the set-up",
    "Trust the clone, which belongs to another user",
}
"""Steps of the workflow that prepare a fresh machine."""


def workflow() -> dict[str, Any]:
    """YAML 1.1 reads the key `on` as true."""
    form = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    return {"on" if key is True else key: value for key, value in form.items()}


def test_it_has_the_published_form_of_a_workflow() -> None:
    form = json.loads((ROOT / "tests" / "schemas" / "github-workflow.json").read_text())
    errors = Draft7Validator(form).iter_errors(workflow())
    assert [f"{list(error.absolute_path)}: {error.message[:200]}" for error in errors] == []


def test_it_has_the_steps_of_our_own_run() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    ours = re.findall(r'^step "(.+)"\n(.+)$', script, re.M)
    steps = [step for step in workflow()["jobs"]["all"]["steps"] if "run" in step and step["name"] not in NOT_OURS]
    assert [(step["name"], step["run"]) for step in steps] == ours
    assert len(ours) == 4
    exported = dict(re.findall(r"^export (\w+)=(\S+)", script, re.M))
    assert exported.items() <= workflow()["env"].items()


def test_it_keeps_what_the_set_up_downloads_and_builds() -> None:
    (cache,) = [step for step in workflow()["jobs"]["all"]["steps"] if "cache" in step.get("uses", "")]
    folder = workflow()["env"]["XDG_CACHE_HOME"]
    assert all(path.startswith(f"{folder}/scaleproof/") for path in cache["with"]["path"].split())
    for pattern in re.findall(r"'([^']+)'", cache["with"]["key"]):
        assert list(ROOT.glob(pattern)), pattern
