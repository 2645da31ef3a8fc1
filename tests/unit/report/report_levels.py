"""A made-up suite with all three levels of evidence and points of a paper. Nothing in it was measured."""

from __future__ import annotations

from pathlib import Path

from scaleproof.spec.suite import Suite, load_suite
from tests.unit.report.report_results import make

SUITE = """
suite: levels
title: Made-up scaling at three levels
experiments:
  scaling:
    summary: speed
    base: {program: train, strategy: sync_overlap, workload: {name: cd_dnn, width: 0.25}, minibatch: 128, steps: 4}
    arms:
      tcp: {transport: tcp, collective: ring}
      grpc: {transport: grpc, collective: ring}
      alone: {transport: null, strategy: local_only}
    sizes:
      full:
        launches: 6
        matrix:
          - {arms: [alone], set: {ranks: 1}}
          - {arms: [tcp, grpc], set: {ranks: 2}}
          - {arms: [alone], set: {ranks: 1, fabric: netns, compute: replay}}
          - {arms: [tcp], set: {fabric: netns, compute: replay}, sweep: {ranks: [2, 4]}}
          - {arms: [grpc], set: {fabric: netns, compute: replay, ranks: 4}}
          - {arms: [alone], set: {ranks: 1, fabric: simulated}}
          - {arms: [tcp], set: {fabric: simulated}, sweep: {ranks: [2, 4, 8]}}
          - {arms: [grpc], set: {fabric: simulated, ranks: 8}}
  weak:
    summary: every number of ranks with a minibatch of its own
    base: {program: train, strategy: sync_overlap, workload: {name: cd_dnn, width: 0.125}, steps: 4, transport: tcp,
      collective: ring}
    arms: {tcp: {}}
    sizes:
      full:
        launches: 6
        matrix:
          - arms: [tcp]
            sweep: {nodes: [{ranks: 2, minibatch: 16}, {ranks: 4, minibatch: 32}], how: [{fabric: netns,
              compute: replay}, {fabric: simulated}]}
  paper:
    summary: the paper's own network on its hardware, a range of efficiency
    base: {program: train, strategy: sync_overlap, workload: vgg_a, minibatch: 128, steps: 4, fabric: simulated,
      compute: {profile: xeon_e5_2698v3_x2}}
    arms: {tcp: {transport: tcp, collective: ring}, alone: {transport: null, strategy: local_only}}
    sizes:
      full:
        launches: 7  # the last one is missing
        matrix:
          - {arms: [alone], set: {ranks: 1}, sweep: {compute.efficiency: [0.4, 0.6]}}
          - {arms: [tcp], sweep: {ranks: [2, 8], compute.efficiency: [0.4, 0.6]}}
"""
ROW = """
- {{id: {id}, paper: levels, statement: made up, metric: speedup, unit: x, direction: higher, x: {x}, value: {value},
    baseline: one, where: a,
   source: nowhere, provenance: {provenance}, gate: {gate}}}
"""
ROWS = (
    {
        "id": "levels.dnn",
        "x": "{nodes: 16, model: cd_dnn, minibatch: 128}",
        "value": 9.5,
        "provenance": "paper",
        "gate": "true",
    },
    {"id": "levels.vgg", "x": "{nodes: 64, model: vgg_a}", "value": 40, "provenance": "memory_high", "gate": "false"},
    {
        "id": "levels.other",
        "x": "{nodes: 64, model: vgg_a, minibatch: 4096}",
        "value": 3,
        "provenance": "paper",
        "gate": "true",
    },
)


def levels_example(root: Path) -> tuple[Path, Suite]:
    """A results folder and its suite, size full."""
    folder = root / "suites" / "levels"
    folder.mkdir(parents=True)
    (folder / "suite.yaml").write_text(SUITE)
    (folder / "published.yaml").write_text("rows:" + "".join(ROW.format(**row) for row in ROWS))
    (folder / "claims.yaml").write_text(
        "".join(f"- {{id: {row['id']}, needs: more nodes, rule: {{name: within, tolerance: 0.2}}}}\n" for row in ROWS)
    )
    suite = load_suite(str(folder))
    make(root / "results", suite, "full")
    return root / "results", suite
