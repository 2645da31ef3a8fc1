"""`scaleproof fields`: what a suite's files may say, and their JSON Schemas."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from scaleproof.cli import main
from scaleproof.commands.fields import FILES, schema

SUITES = Path(__file__).parents[3] / "suites"
SUITE: dict[str, Any] = {
    "suite": "x",
    "title": "X",
    "experiments": {
        "e": {
            "summary": "s",
            "base": {"program": "train", "strategy": {"servers": 2}, "transport": None},
            "arms": {"a": {"strategy": {"name": "sync", "bucket_mib": 4}, "workload.width": 0.5}},
            "sizes": {"ci": {"launches": 1, "matrix": [{"arms": ["a"], "sweep": {"ranks": [1, 2]}}]}},
        }
    },
}


@pytest.mark.parametrize("file", FILES)
def test_every_file_of_every_suite_meets_its_schema(file: str) -> None:
    validator = Draft202012Validator(schema(file))
    validator.check_schema(validator.schema)
    paths = sorted(SUITES.glob(f"*/{file}"))
    assert paths
    errors = [error for path in paths for error in validator.iter_errors(yaml.safe_load(path.read_text()))]
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@pytest.mark.parametrize(
    ("layer", "fields"),
    [
        ("base", {"transprot": "tcp"}),
        ("base", {"transport": "tpc"}),
        ("base", {"ranks": 0}),
        ("arms", {"strategy": {"name": "sync", "sevrers": 2}}),
        ("arms", {"strategy.sevrers": 2}),
        ("set", {"operation": "all_redcue"}),
    ],
    ids=str,
)
def test_the_schema_refuses_a_mistake(layer: str, fields: dict[str, Any]) -> None:
    suite = json.loads(json.dumps(SUITE))
    validator = Draft202012Validator(schema("suite.yaml"))
    assert validator.is_valid(suite)
    experiment = suite["experiments"]["e"]
    if layer == "base":
        experiment["base"] |= fields
    elif layer == "arms":
        experiment["arms"]["b"] = fields
    else:
        experiment["sizes"]["ci"]["matrix"][0]["set"] = fields
    assert not validator.is_valid(suite)


def test_a_field_is_shown_with_its_options_and_the_plugins_that_have_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fields", "strategy"]) == 0
    shown = capsys.readouterr().out
    assert "strategy (must be given)" in shown and "How replicas stay in step" in shown
    assert "strategy.servers (default: 0)  of parameter_server, tensorflow_parameter_server" in shown
    assert "transport." not in shown
    assert main(["fields", "stop", "--file", "suite.yaml"]) == 0
    assert "experiments.sizes.stop.target (default: 0.05)" in capsys.readouterr().out


def test_an_unknown_field_or_file_gets_the_nearest_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fields", "minibacth"]) == 2
    assert capsys.readouterr().err == "unknown field 'minibacth'; did you mean 'minibatch'?\n"
    assert main(["fields", "launches"]) == 2
    assert capsys.readouterr().err == "unknown field 'launches'; --file suite.yaml has it\n"
    assert main(["fields", "--file", "claim.yaml"]) == 2
    assert "did you mean 'claims.yaml'?" in capsys.readouterr().err


def test_an_option_that_sets_a_field_has_its_description(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["predict", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert "gradients exchanged in one call, MiB (a case's strategy.bucket_mib) (default: 25.0)" in text
