"""A case's id is its content: stable under the order of keys, changed by every field, free of the seed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaleproof.spec.case import TrainCase, parse_case
from scaleproof.spec.common_case import form_keys

NAMES = {"suite": "x", "experiment": "e", "arm": "a"}
TRANSFER: dict[str, Any] = {
    **NAMES,
    "program": "transfer",
    "transport": "tcp",
    "sizes": [8, 1024],
    "iterations": 4,
    "warmup": 1,
}
COLLECTIVE: dict[str, Any] = {
    **NAMES,
    "program": "collective",
    "transport": "tcp",
    "collective": "ring",
    "ranks": 2,
    "sizes": [8],
}
TRAIN: dict[str, Any] = {
    **NAMES,
    "program": "train",
    "ranks": 2,
    "transport": "gloo",
    "strategy": "sync",
    "workload": "cd_dnn",
    "minibatch": 64,
    "steps": 3,
    "workload.width": 0.5,
}
OWN: dict[str, Any] = {**NAMES, "program": "own", "entry": "mine", "ranks": 2, "options": {"nodes": 10}}
# For each program a second valid value of every field that may change alone.
OTHERS: dict[str, dict[str, Any]] = {
    "transfer": {
        "suite": "y",
        "experiment": "f",
        "arm": "b",
        "ranks": 3,
        "transport": "shm",
        "interface": "eth0",
        "threads_per_rank": 2,
        "sizes": [1024, 8],
        "iterations": 5,
        "warmup": 2,
        "tracing": "full",
        "handicap": 0.05,
    },
    "collective": {
        "suite": "y",
        "experiment": "f",
        "arm": "b",
        "ranks": 3,
        "transport": "shm",
        "collective": "tree",
        "interface": "eth0",
        "threads_per_rank": 2,
        "operation": "broadcast",
        "dtype": "float64",
        "sizes": [8, 8],
        "iterations": 5,
        "warmup": 2,
        "tracing": "full",
        "handicap": 0.05,
    },
    "train": {
        "suite": "y",
        "experiment": "f",
        "arm": "b",
        "ranks": 4,
        "transport": "horovod",
        "interface": "eth0",
        "threads_per_rank": 2,
        "framework": "tensorflow",
        "strategy": "sync_overlap",
        "workload": "vgg_a",
        "workload.width": 0.25,
        "minibatch": 128,
        "steps": 4,
        "warmup": 3,
        "workload.data": "digits",
        "learning_rate": 0.02,
        "momentum": 0.5,
        "strategy.bucket_mib": 1.0,
        "evaluate_every": 1,
        "tracing": "full",
        "handicap": 0.05,
        "compute": "none",
    },
    "own": {
        "suite": "y",
        "experiment": "f",
        "arm": "b",
        "ranks": 3,
        "transport": "tcp",
        "interface": "eth0",
        "threads_per_rank": 2,
        "entry": "other",
        "source": "0123",
        "options": {"nodes": 11},
        "sizes": [8],
        "iterations": 5,
        "warmup": 2,
        "tracing": "full",
        "handicap": 0.05,
    },
}
BASES = {"transfer": TRANSFER, "collective": COLLECTIVE, "train": TRAIN, "own": OWN}
# Fields with one value so far, or that only change together with another.
_TIED = {"program", "fabric", "launcher"}
# Fields added after the first records: a value other than the default, and the fields that it requires.
SIMULATED = {"fabric": "simulated", "fabric.costs": "stated"}
GOSSIP: dict[str, Any] = {"strategy": "gossip", "transport": "tcp", "collective": "ring"}
LATER: dict[str, dict[str, Any]] = {
    "seconds": {**GOSSIP, "seconds": 2.0},
    "evaluate_s": {**GOSSIP, "evaluate_s": 0.5},
    "step_delay": {**GOSSIP, "step_delay": "fixed:0.1"},
    "message_delay": {**GOSSIP, "message_delay": "fixed:0.1"},
    "faults": {**GOSSIP, "faults": "pause:0,1@1"},
    "nodes": {"fabric": "guests", "nodes": 2},
    "fabric.guest": {"fabric": "guests", "fabric.guest": "qemu"},
    "fabric.link_mbit": {"fabric": "guests", "fabric.link_mbit": 100},
    "fabric.link_delay_ms": {"fabric": "guests", "fabric.link_delay_ms": 1},
    "fabric.node_cores": {"fabric": "netns", "fabric.node_cores": 0.5},
    "transport.fusion_mib": {"transport": "horovod", "transport.fusion_mib": 64},
    "transport.window_mib": {"transport": "grpc+shm", "collective": "ring", "transport.window_mib": 128},
    "transport.region_mib": {"transport": "rdma", "collective": "ring", "transport.region_mib": 32},
    "strategy.mechanism": {
        "strategy": "parameter_server",
        "transport": "shm",
        "collective": "ring",
        "strategy.mechanism": "zero_copy",
    },
    "budget_mib": {"budget_mib": 64},
    "buffers": {"transport": "shm", "collective": "ring", "buffers": "plain"},
    "fabric.cluster": {"fabric": "netns", "fabric.cluster": "ethernet_10g"},
    "dilation": {"fabric": "netns", "compute": "replay", "dilation": 4},
    "shrink": {"fabric": "netns", "compute": "replay", "shrink": 4},
    "compute.profile": {"compute": "replay", "compute.profile": "xeon_e5_2698v3_x2", "compute.efficiency": 0.6},
    "compute.efficiency": {"compute": "replay", "compute.profile": "xeon_e5_2698v3_x2", "compute.efficiency": 0.6},
    "fabric.costs": {"fabric": "simulated", "fabric.costs": "stated"},
    "strategy.groups": {"strategy": "hybrid", "transport": "shm", "collective": "ring", "strategy.groups": 2},
    "strategy.communication": {"strategy": "sync_overlap", "strategy.communication": "main"},
    "strategy.channels": {**SIMULATED, "strategy.channels": 2},
    "strategy.bucket_order": {**SIMULATED, "strategy.bucket_order": "front_first"},
    "strategy.forward_waits": {**SIMULATED, "strategy.forward_waits": "layer"},
    "strategy.servers": {
        "strategy": "parameter_server",
        "transport": "shm",
        "collective": "ring",
        "strategy.servers": 1,
    },
}


@given(st.permutations(sorted(TRAIN)))
def test_the_order_of_keys_does_not_matter(keys: list[str]) -> None:
    assert parse_case({key: TRAIN[key] for key in keys}).case_id == parse_case(TRAIN).case_id


@pytest.mark.parametrize("program", BASES)
def test_every_field_changes_the_id(program: str) -> None:
    base = parse_case(BASES[program])
    later = set(LATER) & set(form_keys(type(base)))
    changed = {key for key in OTHERS[program] if "." not in key}
    assert changed | _TIED | later | ({"collective"} if program != "collective" else set()) == set(
        form_keys(type(base))
    )
    ids = [parse_case({**BASES[program], field: value}).case_id for field, value in OTHERS[program].items()]
    assert len({base.case_id, *ids}) == len(ids) + 1


@pytest.mark.parametrize("field", LATER)
def test_a_field_or_an_option_enters_the_id_only_when_it_is_set(field: str) -> None:
    of_training = field.partition(".")[0] in form_keys(TrainCase)
    values = {**(TRAIN if of_training else TRANSFER), **LATER[field]}
    removed = {"compute.profile", "compute.efficiency"} if field.startswith("compute.") else {field}
    case, without = (
        parse_case(values),
        parse_case({name: value for name, value in values.items() if name not in removed}),
    )
    assert field in case.written() and field not in without.written()
    assert case.case_id != without.case_id


def test_a_case_keeps_its_id_from_version_to_version() -> None:
    """Ids written down when options became nested. Records are looked up by these ids."""
    assert parse_case(TRAIN).case_id == "f544802fc4d72f10"


def test_options_nested_or_dotted_are_the_same_case() -> None:
    nested = {key: value for key, value in TRAIN.items() if not key.startswith("workload")}
    assert parse_case({**nested, "workload": {"name": "cd_dnn", "width": 0.5}}) == parse_case(TRAIN)


def test_an_option_of_another_plugin_is_refused_with_those_that_have_it() -> None:
    with pytest.raises(ValueError, match="strategy 'sync' has no option 'servers'; 'parameter_server'"):
        parse_case({**TRAIN, "strategy.servers": 1})


@given(st.dictionaries(st.sampled_from(sorted(OTHERS["collective"])), st.none()))
def test_equal_content_has_equal_ids_and_unequal_content_has_not(changed: dict[str, None]) -> None:
    values = {**COLLECTIVE, **{field: OTHERS["collective"][field] for field in changed}}
    assert (parse_case(values).case_id == parse_case(COLLECTIVE).case_id) == (not changed)


@pytest.mark.parametrize("program", BASES)
def test_a_case_read_back_from_its_canonical_text_is_the_same(program: str) -> None:
    case = parse_case(BASES[program])
    again = parse_case(json.loads(case.canonical()))
    assert again == case and again.canonical() == case.canonical()


@pytest.mark.parametrize("program", BASES)
def test_the_defaults_written_out_give_the_same_id(program: str) -> None:
    case = parse_case(BASES[program])
    assert parse_case(case.model_dump()).case_id == case.case_id


def test_the_seed_is_no_part_of_a_case() -> None:
    assert "seed" not in json.loads(parse_case(TRAIN).canonical())


def test_another_process_with_another_hash_seed_gives_the_same_id() -> None:
    program = f"from scaleproof.spec.case import parse_case; print(parse_case({TRAIN!r}).case_id)"
    for seed in ("1", "2"):
        printed = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "harness"},
        )
        assert printed.stdout.strip() == parse_case(TRAIN).case_id


def test_the_canonical_text_does_not_depend_on_the_order_of_fields_in_the_code() -> None:
    keys = list(json.loads(parse_case(TRAIN).canonical()))
    assert keys == sorted(keys)
