"""A suite: its folder, its experiments, and the checks of suite.yaml."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from scaleproof.paths import PROJECT
from scaleproof.spec.errors import SpecError
from scaleproof.spec.experiment import Experiment, resolve_experiment
from scaleproof.spec.locate import Document, read_document, shown
from scaleproof.spec.messages import form_error
from scaleproof.spec.registry import nearest
from scaleproof.spec.suite_form import SuiteForm
from scaleproof.spec.tuned import Chosen, check_tune, read_tuned

FILE = "suite.yaml"


@dataclass(frozen=True)
class Suite:
    """A checked suite; every case of every size is resolved."""

    name: str
    title: str
    summary: str
    file: Path
    experiments: dict[str, Experiment]
    reference_minutes: float | None = None
    added_minutes: float = 0.0
    """Of the reference run: of experiments that are younger than the suite."""

    @property
    def folder(self) -> Path:
        """Where the suite lies."""
        return self.file.parent

    def experiment(self, name: str) -> Experiment:
        """By name; raises SpecError with the nearest one."""
        if name not in self.experiments:
            raise SpecError(f"suite {self.name!r} has no experiment {name!r}; {nearest(name, list(self.experiments))}")
        return self.experiments[name]


def load_suite(name_or_path: str | Path, suites: Path | None = None) -> Suite:
    """A suite by name or by its folder (or file), checked; raises SpecError with one line."""
    document, form = read_suite(name_or_path, suites)
    tuned = _tuned(document, form)
    experiments = {
        name: resolve_experiment(document, form.suite, name, experiment, tuned.get(name))
        for name, experiment in form.experiments.items()
    }
    added = sum(experiment.reference_minutes or 0.0 for experiment in form.experiments.values())
    return Suite(form.suite, form.title, form.summary, document.file, experiments, form.reference_minutes, added)


def read_suite(name_or_path: str | Path, suites: Path | None = None) -> tuple[Document, SuiteForm]:
    """The file of a suite and its form, without its cases; raises SpecError with one line."""
    document = read_document(find_suite(str(name_or_path), suites) / FILE)
    form = _parse(document)
    folder = document.file.absolute().parent.name
    if form.suite != folder:
        raise document.error(("suite",), f"{form.suite!r} is not the name of its folder, {folder!r}")
    return document, form


def _tuned(document: Document, form: SuiteForm) -> dict[str, Chosen]:
    """The tuned values of each experiment that has `tune`."""
    tunes = {name: experiment.tune for name, experiment in form.experiments.items() if experiment.tune is not None}
    for name, tune in tunes.items():
        check_tune(document, name, tune, form.experiments[name].arms)
    file = read_tuned(document.file.parent) if tunes else None
    found = file.experiments if file else {}
    return {name: Chosen(document, form.suite, name, tune, found.get(name, {})) for name, tune in tunes.items()}


def suite_folders(suites: Path | None = None) -> list[Path]:
    """Where suites are looked for: the folder given, else those of SCALEPROOF_SUITES and ./suites, or the project's own
    where there is no ./suites."""
    if suites is not None:
        return [suites]
    named = [Path(folder) for folder in os.environ.get("SCALEPROOF_SUITES", "").split(os.pathsep) if folder]
    local = Path("suites")
    return [*named, local if local.is_dir() else PROJECT / "suites"]


def list_suites(suites: Path | None = None) -> list[Path]:
    """The folders of all suites that a name finds, by name."""
    suites_by_name = {
        file.parent.name: file.parent
        for folder in reversed(suite_folders(suites))
        for file in folder.glob(f"[!_.]*/{FILE}")
    }
    return [suites_by_name[name] for name in sorted(suites_by_name)]


def find_suite(name_or_path: str, suites: Path | None = None) -> Path:
    """The folder of a suite; raises SpecError with the nearest name."""
    path = Path(name_or_path)
    if path.name == FILE:
        return path.parent
    if os.sep in name_or_path or name_or_path in (".", ".."):
        if not path.is_dir():
            raise SpecError(f"{name_or_path}: no such folder")
        return Path(os.path.normpath(path)) if path.name else path.absolute()
    candidates = {folder.name: folder for folder in list_suites(suites)}
    if name_or_path in candidates:
        return candidates[name_or_path]
    if (path / FILE).is_file():
        return path
    searched = ", ".join(shown(folder) for folder in suite_folders(suites))
    advice = nearest(name_or_path, list(candidates)) if candidates else "there is none"
    raise SpecError(f"unknown suite {name_or_path!r}; {advice} (looked in {searched})")


def _parse(document: Document) -> SuiteForm:
    if not isinstance(document.data, dict):
        raise document.error((), "empty or no mapping; it starts with 'suite:', 'title:' and 'experiments:'")
    try:
        return SuiteForm.model_validate(document.data)
    except ValidationError as failed:
        raise form_error(document, (), SuiteForm, failed) from None
