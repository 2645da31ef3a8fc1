"""Everything that a user's commands do with a file: list, run --dry-run, judge, and the figures of a report."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scaleproof.claims.claims_yaml import load_claims
from scaleproof.claims.judge import judge_suite
from scaleproof.claims.made_up import ImpossibleValue, Wanted
from scaleproof.claims.made_up_store import MadeUpStore
from scaleproof.claims.noise_floor import base_metric
from scaleproof.claims.power import Launches, unjudged
from scaleproof.commands.dry_run import dry_run, print_undecidable
from scaleproof.commands.run import plan_experiments
from scaleproof.commands.sequential import sequential
from scaleproof.record.store import Store
from scaleproof.report.headlines.load import FILE as FIGURES
from scaleproof.report.headlines.load import load_headlines
from scaleproof.spec.cluster import GPU_NODE_TYPES, GPUS, NODE_TYPES, node_types
from scaleproof.spec.errors import SpecError
from scaleproof.spec.gpu_node import gpu_nodes, gpus
from scaleproof.spec.suite import FILE, Suite, load_suite
from scaleproof.spec.suite_form import SIZES
from tools.mutated_files.any_floor import PROFILE
from tools.mutated_files.messages import fault_of
from tools.mutated_files.mutations import CLUSTER, ROOT, MutatedFile
from tools.reference.text_records import unpack

CLUSTERED = """\
suite: clustered
title: Cases on the cluster of a file
experiments:
  reduce:
    summary: All-reduce
    base: {program: collective, operation: all_reduce, sizes: [1 KiB], transport: tcp, collective: ring, ranks: 4}
    arms:
      predicted: {fabric: {name: simulated, cluster: CLUSTER}}
      emulated: {fabric: {name: netns, cluster: CLUSTER}}
    sizes: {ci: {launches: 1, matrix: [{arms: [predicted, emulated]}]}}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a user would see of one file."""

    file: MutatedFile
    message: str | None
    """The one line; None: the file was taken."""
    failure: Exception | None
    """What ended in a traceback."""
    fault: str | None
    """What is wrong with the message, or the traceback; None: nothing."""
    seconds: float
    """CPU time."""

    @property
    def ending(self) -> str:
        """taken, message or fault."""
        if self.fault is not None:
            return "fault"
        return "taken" if self.message is None else "message"

    @property
    def fault_line(self) -> str:
        """What is wrong, in a line."""
        file = self.file
        name = f"{file.source.path.parent.name}/{file.source.path.name}, {' and '.join(file.mutations)}"
        return f"file {file.number} ({name}): {self.fault}" + (f": {self.message}" if self.message else "")


class Workplace:
    """A folder with all suites, in which one file at a time is replaced by a mutated one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        unpack(folder / "results")
        self._kept = Store(folder / "results")
        self._empty = Store(folder / "nothing")
        self._suites: dict[str, Suite] = {}
        self._made_up: dict[str, MadeUpStore] = {}
        for suite in (path.parent for path in (ROOT / "suites").glob(f"*/{FILE}")):
            own = folder / "suites" / suite.name
            own.mkdir(parents=True)
            for path in suite.iterdir():
                (own / path.name).symlink_to(path)
        (folder / "suites" / "clustered").mkdir()

    def outcome(self, file: MutatedFile) -> Outcome:
        """Of all commands on a file; what they print is thrown away."""
        started = time.process_time()
        message, failure, fault = None, None, None
        with contextlib.ExitStack() as until_judged:
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    self._commands(file, until_judged)
            except SpecError as mistake:
                message = str(mistake)
                fault = fault_of(message, self.folder)
            except Exception as error:
                failure = error
                last = traceback.extract_tb(error.__traceback__)[-1]
                fault = f"traceback: {type(error).__name__}: {error}, {last.filename}:{last.lineno}"
        return Outcome(file, message, failure, fault, time.process_time() - started)

    def _commands(self, file: MutatedFile, until_judged: contextlib.ExitStack) -> None:
        """The file stays in its place until its message was looked at."""
        if file.source.kind == CLUSTER:
            self._on_cluster(file)
            return
        name = file.source.path.parent.name
        path = self.folder / "suites" / name / file.source.path.name
        if path.name == FILE:
            until_judged.enter_context(_instead(path, file.content))
            suite = load_suite(path.parent)
            self._run(suite, file.number)
            if file.number % 2:
                self._judge(suite, file)
            return
        suite = self._suite(name)
        until_judged.enter_context(_instead(path, file.content))
        self._judge(suite, file)

    def _suite(self, name: str) -> Suite:
        """A suite whose suite.yaml is as it is: read once."""
        if name not in self._suites:
            self._suites[name] = load_suite(self.folder / "suites" / name)
        return self._suites[name]

    def _run(self, suite: Suite, number: int) -> None:
        """Every size is planned, and one of them shown, on a machine whose noise is not known; for a quarter also what
        a machine with known noise can decide."""
        sizes = list(dict.fromkeys(size for experiment in suite.experiments.values() for size in experiment.sizes))
        for size in sizes:
            plans = plan_experiments(suite, None, size)
            for experiment in plans:
                sequential(suite, experiment, size)
            if size == sizes[number % len(sizes)]:
                dry_run(suite, plans, size, self._empty.results)
                if number % 4 == 1:
                    print_undecidable(suite, plans, size, PROFILE)

    def _judge(self, suite: Suite, file: MutatedFile) -> None:
        """What launches can decide on a machine with known noise, and the verdicts: by the kept records, which are of
        few experiments of size smoke; every eighth file by made-up launches of every case of that size; the others
        without any. Figures read claims and rows as judging does: a quarter of these is enough."""
        if file.source.path.name == FIGURES or file.number % 4 == 0:
            load_headlines(suite)
        if file.source.path.name == FIGURES:
            return
        if file.source.path.name != FILE:
            size = ("smoke", "small")[file.number // 4 % 2]
            print_undecidable(suite, suite.experiments, size, PROFILE)
        if file.number % 2:
            judge_suite(suite, "smoke", self._kept)
        elif file.number % 8 == 0:
            if suite.name not in self._made_up:
                self._made_up[suite.name] = made_up_launches(load_suite(ROOT / "suites" / suite.name))
            judge_suite(suite, "smoke", self._made_up[suite.name])
        else:
            judge_suite(suite, SIZES[file.number // 2 % len(SIZES)], self._empty)

    def _on_cluster(self, file: MutatedFile) -> None:
        path = self.folder / "clusters" / file.source.path.name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file.content)
        readers: dict[str, Callable[[Path], Any]] = {NODE_TYPES: node_types, GPU_NODE_TYPES: gpu_nodes, GPUS: gpus}
        if path.name in readers:
            readers[path.name](path)
            return
        folder = self.folder / "suites" / "clustered"
        (folder / FILE).write_text(CLUSTERED.replace("CLUSTER}", f"{path}}}"))
        self._run(load_suite(folder), file.number)


def made_up_launches(suite: Suite) -> MadeUpStore:
    """The first launch of every case that the claims of a suite use at size smoke, as the first of them measures it."""
    launches, store, done = Launches(suite, "smoke"), MadeUpStore(), set[str]()
    for claim in load_claims(suite):
        if claim.metric is None or unjudged(claim, "smoke") is not None:
            continue
        made_up = base_metric(claim.metric).made_up
        for planned in launches.selected(claim, claim.form.select):
            if made_up is None or planned.plan_index or planned.case.case_id in done:
                continue
            with contextlib.suppress(ImpossibleValue):
                store.add(planned, made_up(Wanted(planned.case, 1.0, claim.form.nbytes, (planned.case,))))
                done.add(planned.case.case_id)
    return store


@contextlib.contextmanager
def _instead(path: Path, content: bytes) -> Iterator[None]:
    """This content in place of a link, as long as it takes."""
    target = path.readlink()
    path.unlink()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.unlink()
        path.symlink_to(target)


@contextlib.contextmanager
def workplace() -> Iterator[Workplace]:
    """A workplace in a folder of its own, which is the working directory as long as it lasts."""
    before, folder = Path.cwd(), Path(tempfile.mkdtemp(prefix="scaleproof-mutated-"))
    try:
        os.chdir(folder)
        yield Workplace(folder)
    finally:
        os.chdir(before)
        shutil.rmtree(folder)
