"""Every mistake in a suite file is one line: file, line, key, what is wrong, the nearest valid name."""

from __future__ import annotations

from pathlib import Path

import pytest

from scaleproof.spec import registry
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import load_suite
from scaleproof.workloads.case_network import workloads_for
from scaleproof.workloads.datasets import digits

ALGORITHMS, PROGRAMS = ", ".join(registry.algorithms()), ", ".join(registry.names("program"))
OF_DIGITS = " or ".join(workloads_for(digits.ROWS))
GOOD = """\
suite: x
title: A suite
experiments:
  speed:
    summary: Two arms
    deadline_s: 60
    base: {program: train, ranks: 2, strategy: sync, steps: 5, minibatch: 64}
    arms:
      tcp:
        transport: tcp
        collective: ring
      gloo: {transport: gloo}
    sizes:
      smoke:
        launches: 6
        set: {warmup: 1}
        matrix:
          - arms: [tcp, gloo]
            sweep: {workload: [cd_dnn], workload.width: [0.25]}
          - arms: [gloo]
            sweep: {network: [{workload: {name: vgg_a, image_side: 32}}]}
  moves:
    summary: Messages
    base: {program: transfer, sizes: [1 KiB, 64 MiB]}
    arms: {tcp: {transport: tcp}}
    sizes:
      ci: {launches: 2, matrix: [{arms: [tcp]}]}
"""

# (text of GOOD, what a person wrote instead, the message after the file's name)
MISTAKES = [
    # names
    (
        "transport: tcp\n",
        "transport: tpc\n",
        "10: experiments.speed.arms.tcp.transport: unknown transport 'tpc'; did you mean 'tcp'?",
    ),
    (
        "collective: ring",
        "collective: rign",
        "11: experiments.speed.arms.tcp.collective: unknown collective 'rign'; did you mean 'ring'?",
    ),
    (
        "strategy: sync,",
        "strategy: snyc,",
        "7: experiments.speed.base.strategy: unknown strategy 'snyc'; did you mean 'sync'?",
    ),
    (
        "strategy: sync,",
        r'"strat\regy": sync,',
        r"7: experiments.speed.base.strat\regy: unknown key; did you mean 'strategy'?",
    ),
    (
        "[cd_dnn]",
        "[cd_dn]",
        (
            "19: experiments.speed.sizes.smoke.matrix[0].sweep.workload[0]: unknown workload 'cd_dn'; "
            "did you mean 'cd_dnn'?"
        ),
    ),
    (
        "name: vgg_a,",
        "name: vgg_b,",
        (
            "21: experiments.speed.sizes.smoke.matrix[1].sweep.network[0].workload.name: unknown workload 'vgg_b'; "
            "did you mean 'vgg_a'?"
        ),
    ),
    (
        "program: train",
        "program: [train]",
        "7: experiments.speed.base.program: unknown program ['train']; did you mean 'train'?",
    ),
    (
        "program: train",
        "program: trian",
        "7: experiments.speed.base.program: unknown program 'trian'; did you mean 'train'?",
    ),
    (
        "ranks: 2,",
        "ranks: 2, fabric: hots,",
        "7: experiments.speed.base.fabric: unknown fabric 'hots'; did you mean 'host'?",
    ),
    (
        "ranks: 2,",
        "ranks: 2, launcher: mpirum,",
        "7: experiments.speed.base.launcher: unknown launcher 'mpirum'; did you mean 'mpirun'?",
    ),
    (
        "ranks: 2,",
        "ranks: 2, framework: troch,",
        "7: experiments.speed.base.framework: unknown framework 'troch'; did you mean 'torch'?",
    ),
    (
        "ranks: 2,",
        "ranks: 2, workload: {data: digit},",
        "7: experiments.speed.base.workload.data: unknown dataset 'digit'; did you mean 'digits'?",
    ),
    # options as version 0.1 wrote them
    (
        "ranks: 2,",
        "ranks: 2, servers: 1,",
        (
            "7: experiments.speed.base.servers: 'servers' is an option of the strategy now: write strategy: {servers: "
            "...}, or strategy.servers"
        ),
    ),
    # keys
    ("title: A suite", "titel: A suite", "2: titel: unknown key; did you mean 'title'?"),
    ("title: A suite", "title: A suite\nsummray: s", "3: summray: unknown key; did you mean 'summary'?"),
    (
        "summary: Two arms",
        "summary: Two arms\n    arm: {}",
        "6: experiments.speed.arm: unknown key; did you mean 'arms'?",
    ),
    ("deadline_s: 60", "deadline: 60", "6: experiments.speed.deadline: unknown key; did you mean 'deadline_s'?"),
    (
        "launches: 6",
        "launchs: 6",
        "15: experiments.speed.sizes.smoke.launchs: unknown key; did you mean 'launches'?",
    ),
    (
        "launches: 6",
        "launches: 1001",
        "15: experiments.speed.sizes.smoke.launches: 1001 is not allowed; it must be at most 1000",
    ),
    (
        "- arms: [gloo]",
        "- arms: [gloo]\n            sweeps: {}",
        "21: experiments.speed.sizes.smoke.matrix[1].sweeps: unknown key; did you mean 'sweep'?",
    ),
    (
        "transport: tcp\n",
        "transprot: tcp\n",
        "10: experiments.speed.arms.tcp.transprot: unknown key; did you mean 'transport'?",
    ),
    ("minibatch: 64", "mini_batch: 64", "7: experiments.speed.base.mini_batch: unknown key; did you mean 'minibatch'?"),
    (
        "{warmup: 1}",
        "{warm_up: 1}",
        "16: experiments.speed.sizes.smoke.set.warm_up: unknown key; did you mean 'warmup'?",
    ),
    (
        "workload.width: [0.25]",
        "widht: [0.25]",
        "19: experiments.speed.sizes.smoke.matrix[0].sweep.widht: unknown key; did you mean 'workload.width'?",
    ),
    (
        "image_side: 32",
        "imageside: 32",
        (
            "21: experiments.speed.sizes.smoke.matrix[1].sweep.network[0].workload.imageside: unknown key; "
            "did you mean 'workload.image_side'?"
        ),
    ),
    ("smoke:", "smok:", "14: experiments.speed.sizes.smok: unknown size; did you mean 'smoke'?"),
    (
        "program: transfer,",
        "program: transfer, operation: broadcast,",
        "24: experiments.moves.base.operation: program 'transfer' has no such key; did you mean 'iterations'?",
    ),
    ("ranks: 2,", "ranks: 2, suite: y,", "7: experiments.speed.base.suite: set by the harness; leave it out"),
    (
        "      gloo: {transport: gloo}",
        "      tcp: {transport: gloo}",
        "12: experiments.speed.arms.tcp: repeated key; it stands on line 9 already",
    ),
    (
        "      gloo: {transport: gloo}",
        "      1: {transport: gloo}",
        "12: experiments.speed.arms: key '1' is no text; write it in quotes",
    ),
    (
        "      gloo: {transport: gloo}",
        "      gloo: {<<: {}}",
        "12: experiments.speed.arms.gloo: key '<<' is no text; write the fields out, or put them in 'base'",
    ),
    # types and ranges
    ("ranks: 2", "ranks: two", "7: experiments.speed.base.ranks: 'two' is not a whole number"),
    ("ranks: 2", "ranks: 2.5", "7: experiments.speed.base.ranks: 2.5 is not a whole number"),
    ("ranks: 2", "ranks: true", "7: experiments.speed.base.ranks: true is neither a number nor a name"),
    ("ranks: 2", "ranks: null", "7: experiments.speed.base.ranks: nothing (null) is not a whole number"),
    ("ranks: 2", "ranks: 0", "7: experiments.speed.base.ranks: 0 is not allowed; it must be more than 0"),
    ("ranks: 2", "ranks: -1", "7: experiments.speed.base.ranks: -1 is not allowed; it must be more than 0"),
    (
        "workload.width: [0.25]",
        "workload.width: [1.5]",
        "19: experiments.speed.sizes.smoke.matrix[0].sweep.workload.width[0]: 1.5 is not allowed; it must be at most 1",
    ),
    ("ranks: 2", "ranks: 2, learning_rate: .inf", "7: experiments.speed.base.learning_rate: inf is no finite number"),
    (
        "launches: 6",
        "launches: 0",
        "15: experiments.speed.sizes.smoke.launches: 0 is not allowed; it must be more than 0",
    ),
    ("launches: 6", "launches: many", "15: experiments.speed.sizes.smoke.launches: 'many' is not a whole number"),
    ("deadline_s: 60", "deadline_s: -1", "6: experiments.speed.deadline_s: -1 is not allowed; it must be more than 0"),
    ("arms: [tcp, gloo]", "arms: tcp", "18: experiments.speed.sizes.smoke.matrix[0].arms: 'tcp' is not a list"),
    (
        "set: {warmup: 1}",
        "set: warmup",
        "16: experiments.speed.sizes.smoke.set: 'warmup' is not a mapping (key: value)",
    ),
    (
        "64 MiB",
        "64 Mebi",
        (
            "24: experiments.moves.base.sizes[1]: '64 Mebi' is no size in bytes; "
            "write a number with its unit, as in '64 KiB'"
        ),
    ),
    ("64 MiB", "-4", "24: experiments.moves.base.sizes[1]: -4 is not allowed; it must be at least 0"),
    ("[1 KiB, 64 MiB]", "[]", "24: experiments.moves.base.sizes: empty; give at least one"),
    ("[1 KiB, 64 MiB]", "1 KiB", "24: experiments.moves.base.sizes: '1 KiB' is not a list"),
    # impossible sweeps
    (
        "workload: [cd_dnn]",
        "workload: []",
        "19: experiments.speed.sizes.smoke.matrix[0].sweep.workload: empty; give at least one",
    ),
    (
        "arms: [tcp, gloo]",
        "arms: [tcp, glo]",
        "18: experiments.speed.sizes.smoke.matrix[0].arms[1]: unknown arm 'glo'; did you mean 'gloo'?",
    ),
    ("arms: [tcp, gloo]", "arms: []", "18: experiments.speed.sizes.smoke.matrix[0].arms: empty; give at least one"),
    ("matrix: [{arms: [tcp]}]", "matrix: []", "27: experiments.moves.sizes.ci.matrix: empty; give at least one"),
    ("arms: {tcp: {transport: tcp}}", "arms: {}", "25: experiments.moves.arms: empty; give at least one"),
    (
        "workload.width: [0.25]",
        "workload.width: [0.25, 0.25]",
        (
            "18: experiments.speed.sizes.smoke.matrix[0]: the same case twice, in arm 'tcp': {'workload': "
            "'cd_dnn', 'workload.width': 0.25}; first in matrix[0]"
        ),
    ),
    # fields that do not go together
    (
        "gloo: {transport: gloo}",
        (
            "gloo: {transport: tensorflow-grpc, framework: tensorflow, strategy: "
            "tensorflow_parameter_server, collective: ring}"
        ),
        (
            "12: experiments.speed.arms.gloo.collective: "
            "strategy 'tensorflow_parameter_server' has TensorFlow exchange by itself; leave it out, or 'native'"
        ),
    ),
    ("minibatch: 64", "minibatch: 63", "7: experiments.speed.base.minibatch: 63 does not divide over 2 ranks"),
    (
        "collective: ring",
        "collective: native",
        (
            "11: experiments.speed.arms.tcp.collective: collective 'native' does not fit transport 'tcp'; "
            f"it takes an algorithm ({ALGORITHMS})"
        ),
    ),
    (
        "{transport: gloo}\n",
        "{transport: horovod, collective: ring}\n",
        (
            "12: experiments.speed.arms.gloo.collective: collective 'ring' does not fit transport 'horovod'; "
            "it takes 'native'"
        ),
    ),
    (
        "{transport: gloo}\n",
        "{transport: {name: horovod, fusion_mib: 64}, framework: tensorflow}\n",
        (
            "12: experiments.speed.arms.gloo.transport.fusion_mib: "
            "Horovod's eager calls for TensorFlow end one by one, so there is nothing to fuse; use framework 'torch'"
        ),
    ),
    (
        "{transport: gloo}\n",
        "{transport: {name: gloo, fusion_mib: 64}}\n",
        (
            "12: experiments.speed.arms.gloo.transport.fusion_mib: transport 'gloo' has no option 'fusion_mib'; "
            "'horovod', 'horovod-mpi', 'tensorflow-mirrored' have it"
        ),
    ),
    (
        "        collective: ring\n",
        "",
        (
            "10: experiments.speed.arms.tcp.transport: collective 'native' does not fit transport 'tcp'; "
            f"it takes an algorithm ({ALGORITHMS})"
        ),
    ),
    (
        "{transport: gloo}\n",
        "{transport: gloo, launcher: mpirun}\n",
        "12: experiments.speed.arms.gloo.launcher: transport 'gloo' needs launcher 'local', not 'mpirun'",
    ),
    (
        "{transport: gloo}\n",
        "{transport: mpi}\n",
        "12: experiments.speed.arms.gloo.transport: transport 'mpi' needs launcher 'mpirun', not 'local'",
    ),
    (
        "{transport: gloo}\n",
        "{transport: null}\n",
        "7: experiments.speed.base.strategy: strategy 'sync' needs a transport; only 'local_only' has none",
    ),
    (
        "{transport: gloo}\n",
        "{transport: gloo, strategy: local_only}\n",
        "12: experiments.speed.arms.gloo.transport: strategy 'local_only' takes no transport",
    ),
    (
        "strategy: sync,",
        "strategy: {name: parameter_server, mechanism: zero_copy},",
        (
            "7: experiments.speed.base.strategy.mechanism: "
            "mechanism 'zero_copy' needs one-sided writes (rdma, shm, ucx), not transport 'tcp'"
        ),
    ),
    (
        "strategy: sync,",
        "strategy: sync_overlap, framework: tensorflow,",
        (
            "7: experiments.speed.base.strategy: "
            "'sync_overlap' needs gradients one by one, which compiled TensorFlow steps do not give; use 'sync'"
        ),
    ),
    (
        "image_side: 32",
        "image_side: 8",
        (
            "21: experiments.speed.sizes.smoke.matrix[1].sweep.network[0].workload.image_side: workload 'vgg_a': "
            "image_side 8 leaves no pixels after layer 'pool4'; give a larger one"
        ),
    ),
    (
        "ranks: 2,",
        "ranks: 2, workload: {data: digits},",
        (
            "7: experiments.speed.base.workload.data: "
            f"workload 'cd_dnn' does not fit data 'digits' (8x8 images, 10 classes); use {OF_DIGITS}"
        ),
    ),
    (
        "steps: 5, ",
        "",
        (
            "18: experiments.speed.sizes.smoke.matrix[0]: program 'train' needs 'steps'; "
            "set it in base, an arm, 'set' or 'sweep'"
        ),
    ),
    ("program: train, ", "", f"7: experiments.speed.base: program: missing; known: {PROGRAMS}"),
    # the file
    ("suite: x", "suite: y", "1: suite: 'y' is not the name of its folder, 'x'"),
    ("title: A suite", "title: [A suite", "3: not valid YAML: expected ',' or ']', but got ':'"),
    (
        "title: A suite",
        "title: !!python/name:os.system A",
        "2: not valid YAML: could not determine a constructor for the tag 'tag:yaml.org,2002:python/name:os.system'",
    ),
    ("title: A suite", "title: *nobody", "2: not valid YAML: found undefined alias 'nobody'"),
    ("title: A suite", "title: \x01", "2: not valid YAML: character #x0001 is not allowed"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for suite x, below the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "suites" / "x").mkdir(parents=True)
    return Path("suites/x")


def test_a_line_break_that_editors_do_not_show_leaves_the_line_within_the_file(folder: Path) -> None:
    (folder / "suite.yaml").write_text("suite: x\x85title: [\x85\x85", encoding="utf-8")
    with pytest.raises(SpecError, match=r"suite\.yaml:1: not valid YAML"):
        load_suite(folder)


def test_the_good_file_is_good(folder: Path) -> None:
    (folder / "suite.yaml").write_text(GOOD)
    assert [len(experiment.sizes) for experiment in load_suite("x").experiments.values()] == [1, 1]


@pytest.mark.parametrize(
    ("right", "wrong", "message"), MISTAKES, ids=[wrong.strip()[:40] or "left out" for _, wrong, _ in MISTAKES]
)
def test_a_mistake_is_one_line_that_names_its_place(folder: Path, right: str, wrong: str, message: str) -> None:
    assert right in GOOD
    (folder / "suite.yaml").write_text(GOOD.replace(right, wrong, 1))
    with pytest.raises(SpecError) as caught:
        load_suite("x")
    assert str(caught.value) == f"suites/x/suite.yaml:{message}"


@pytest.mark.parametrize(
    ("timed", "transport", "alone"), [(False, "shm", False), (False, "tcp", True), (True, "shm", True)]
)
def test_without_clocks_ranks_run_beside_others_unless_they_share_interfaces(
    folder: Path, timed: bool, transport: str, alone: bool
) -> None:
    """The machine's interfaces would count the bytes of other launches too."""
    text = GOOD.replace("summary: Messages", f"summary: Messages\n    timed: {str(timed).lower()}")
    (folder / "suite.yaml").write_text(text.replace("{tcp: {transport: tcp}}", f"{{tcp: {{transport: {transport}}}}}"))
    experiment = load_suite("x").experiment("moves")
    assert (experiment.timed, experiment.runs_alone("ci")) == (timed, alone)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "suites/x/suite.yaml:1: empty or no mapping; it starts with 'suite:', 'title:' and 'experiments:'"),
        (b"- 1\n", "suites/x/suite.yaml:1: empty or no mapping; it starts with 'suite:', 'title:' and 'experiments:'"),
        (b"\xff\xfe\xfa", "suites/x/suite.yaml:1: not UTF-8 text: byte 0xff"),
        (b"suite: &a [*a]\n", "suites/x/suite.yaml:1: not usable: nested too deeply"),
        (b"suite: " + b"[" * 5000, "suites/x/suite.yaml:1: not usable: nested too deeply"),
        (b"- " * 100_000, "suites/x/suite.yaml:1: not usable: nested too deeply"),
        (
            b"a: &a [1,1,1,1,1,1,1,1,1,1]\n"
            + b"".join(b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 10)) for i in range(8)),
            "suites/x/suite.yaml:5: e: more than 100000 entries, aliases written out",
        ),
    ],
    ids=["empty", "list", "binary", "cycle", "deep", "deep list", "bomb"],
)
def test_a_file_that_is_no_suite_is_one_line(folder: Path, content: bytes, message: str) -> None:
    (folder / "suite.yaml").write_bytes(content)
    with pytest.raises(SpecError) as caught:
        load_suite("x")
    assert str(caught.value) == message


def test_missing_things_are_named_with_the_nearest(folder: Path) -> None:
    (folder / "suite.yaml").write_text(GOOD)
    for load, message in [
        (lambda: load_suite("suites/y"), "suites/y: no such folder"),
        (lambda: load_suite("suites"), "unknown suite 'suites'; known: x"),
        (lambda: load_suite("suites/"), "suites/suite.yaml: no such file"),
        (lambda: load_suite("x").experiment("sped"), "suite 'x' has no experiment 'sped'; did you mean 'speed'?"),
        (lambda: load_suite("x").experiment("speed").size("ci"), "experiment 'speed' has no size 'ci'; known: smoke"),
    ]:
        with pytest.raises(SpecError) as caught:
            load()
        assert str(caught.value).startswith(message)
