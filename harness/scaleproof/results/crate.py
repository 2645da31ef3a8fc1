"""A Research Object Crate (RO-Crate 1.2) of chosen launches: with it, an artifact committee can judge the
claims again."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from rocrate.model import ContextEntity, Person
from rocrate.rocrate import ROCrate

import scaleproof
from scaleproof.paths import PROJECT
from scaleproof.record.index import Index
from scaleproof.results.export import draft_path
from scaleproof.results.merge import BESIDE_RECORDS
from scaleproof.results.views import TABLES
from scaleproof.spec.errors import SpecError
from scaleproof.spec.suite import Suite

VERSION = "1.2"
_PROJECT_FILES = {
    "LICENSE": "the licence of the code and of these records",
    "CITATION.cff": "how to cite",
    "pyproject.toml": "direct dependencies",
    "requirements.lock": "every package with its version",
    "environment.yml": "the environment in conda-forge names",
}
_FORMATS = {
    ".parquet": "application/vnd.apache.parquet",
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".txt": "text/plain",
    ".toml": "application/toml",
    ".md": "text/markdown",
    ".diff": "text/x-diff",
}
LICENCE = "https://www.apache.org/licenses/LICENSE-2.0"
README = """# {title}

{count} launches of Scaleproof {version} with every sample, log and exit code, the tables and verdicts that follow from
them, and the environment.

- `results/` is a results folder: `scaleproof results list --results results`,
  `scaleproof show LAUNCH --results results`.
- `tables/` has the same as Parquet, for any other tool: {tables}.
- `environment/` has the versions of all packages: `make env` in a clone of Scaleproof at the commit below installs them
  from `requirements.lock`. If a launch ran with uncommitted changes, its `run.json` names their file in
  `results/differences/`.
- `suites/` has the experiments and claims. To judge again without running anything:
  `scaleproof judge SUITE --size SIZE --suites suites --results results`.

Code: {codes}. Machines: {machines}.
"""


def to_crate(
    results: Path, chosen: pa.Table, tables: Mapping[str, pa.Table], suites: Mapping[str, Suite], path: Path
) -> int:
    """Write the crate: a zip archive if `path` ends with .zip, else a folder. Returns the number of launches in it;
    SpecError if the crate does not hold all of them."""
    draft = draft_path(path)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as temporary:
        folder = Path(temporary) / "crate"
        _fill(folder, results, chosen, tables, suites)
        _describe(folder, chosen, suites)
        count = read_back(folder, len(chosen))
        try:
            if path.suffix == ".zip":
                _zip(folder, draft)
                draft.rename(path)
            else:
                folder.rename(path)
        finally:
            draft.unlink(missing_ok=True)
    return count


def read_back(folder: Path, launches: int) -> int:
    """Check that every described file is in the crate and that all `launches` are readable records; their number."""
    crate = ROCrate(str(folder))
    missing = [
        entity.id
        for entity in crate.data_entities
        if not entity.id.startswith("http") and not (folder / entity.id).exists()
    ]
    if missing:
        raise SpecError(f"{folder.name}: the crate names {missing[0]!r} and has none")
    with tempfile.TemporaryDirectory() as temporary:
        (Path(temporary) / "runs").symlink_to((folder / "results" / "runs").resolve())
        index = Index(Path(temporary))
        if index.problems or len(index.launches) != launches:
            raise SpecError(f"{folder.name}: {len(index.launches)} of {launches} launches can be read in the crate")
        return len(index.launches)


def _fill(
    folder: Path, results: Path, chosen: pa.Table, tables: Mapping[str, pa.Table], suites: Mapping[str, Suite]
) -> None:
    """Copy all files but the metadata file."""
    for case_id, launch in zip(chosen["case"].to_pylist(), chosen["launch"].to_pylist(), strict=True):
        shutil.copytree(results / "runs" / case_id / launch, folder / "results" / "runs" / case_id / launch)
    others = [f"{suite}.*" for suite in _other_suites(results, chosen)]
    for name in (*BESIDE_RECORDS, "tables", "claims"):
        if (results / name).is_dir():
            shutil.copytree(results / name, folder / "results" / name, ignore=shutil.ignore_patterns(".*", *others))
    (folder / "tables").mkdir(parents=True)
    for name, table in tables.items():
        pq.write_table(table, folder / "tables" / f"{name}.parquet", compression="zstd")
    for name, suite in suites.items():
        shutil.copytree(suite.folder, folder / "suites" / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    (folder / "environment").mkdir()
    for name in _PROJECT_FILES:
        if (PROJECT / name).exists():
            shutil.copyfile(PROJECT / name, folder / _project_file(name))
    (folder / "environment" / "packages.txt").write_text(_packages())
    (folder / "README.md").write_text(_readme(chosen, tables))


def _packages() -> str:
    """Python and all packages of this environment with their versions, one per line."""
    distributions = importlib.metadata.distributions()
    packages = sorted(f"{distribution.metadata['Name']}=={distribution.version}" for distribution in distributions)
    return "\n".join(dict.fromkeys([f"python=={sys.version.split()[0]}", *packages])) + "\n"


def _readme(chosen: pa.Table, tables: Iterable[str]) -> str:
    """`tables`: names of the tables in the crate."""
    codes_and_commits = zip(chosen["code"].to_pylist(), chosen["commit"].to_pylist(), strict=True)
    codes = sorted({f"digest {code}, commit {commit or 'unknown'}" for code, commit in codes_and_commits})
    return README.format(
        title=_title(chosen),
        count=len(chosen),
        version=scaleproof.__version__,
        codes="; ".join(codes),
        tables=", ".join(f"`{name}`" for name in tables),
        machines=", ".join(sorted(set(chosen["machine"].to_pylist()))),
    )


def _other_suites(results: Path, chosen: pa.Table) -> set[str]:
    """Suites whose plans and verdicts are not part of the crate."""
    files = [path.name for name in ("stops", "tables", "claims") for path in (results / name).glob("*.*")]
    return {name.partition(".")[0] for name in files if not name.startswith(".")} - set(chosen["suite"].to_pylist())


def _describe(folder: Path, chosen: pa.Table, suites: Mapping[str, Suite]) -> None:
    """Write ro-crate-metadata.json."""
    citation = _citation()
    crate = ROCrate(version=VERSION)
    crate.name, crate.license = _title(chosen), LICENCE
    crate.description = (
        "Launches of distributed deep learning under Scaleproof, with every sample; suites "
        f"{', '.join(sorted(set(chosen['suite'].to_pylist())))}."
    )
    crate.keywords = citation.get("keywords", [])
    crate.root_dataset["datePublished"] = max(chosen["started_at"].to_pylist())[:10]
    authors = [
        crate.add(Person(crate, f"#author-{number}", {"name": _name(author)}))
        for number, author in enumerate(citation.get("authors", []))
    ]
    if authors:
        crate.root_dataset["author"] = authors
    software = crate.add(ContextEntity(crate, "#scaleproof", _software()))
    _add_data(crate, folder, chosen, suites)
    action = _measuring_action(chosen, software.id, [author.id for author in authors])
    crate.root_dataset["mentions"] = crate.add(ContextEntity(crate, "#measured", action))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crate.metadata.write(str(folder))


def _software() -> dict[str, Any]:
    return {
        "@type": "SoftwareApplication",
        "name": "Scaleproof",
        "softwareVersion": scaleproof.__version__,
        "license": LICENCE,
    }


def _measuring_action(chosen: pa.Table, software_id: str, author_ids: Sequence[str]) -> dict[str, Any]:
    """Who made the records, with what, from when to when."""
    started = chosen["started_at"].to_pylist()
    return {
        "@type": "CreateAction",
        "name": "scaleproof run",
        "instrument": {"@id": software_id},
        "result": {"@id": "results/runs/"},
        "startTime": min(started),
        "endTime": max(started),
        "agent": [{"@id": author_id} for author_id in author_ids],
    }


def _add_data(crate: ROCrate, folder: Path, chosen: pa.Table, suites: Mapping[str, Suite]) -> None:
    """Describe every file outside the records, and the records of each case as one data set; tables/launches.parquet
    has them launch by launch."""
    descriptions = _file_descriptions()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not name.startswith("results/runs/"):
            properties: dict[str, Any] = {
                "name": descriptions.get(name, path.name),
                "contentSize": str(path.stat().st_size),
            }
            if path.suffix in _FORMATS:
                properties["encodingFormat"] = _FORMATS[path.suffix]
            crate.add_file(path, name, properties=properties)
    crate.add_dataset(
        folder / "results" / "runs", "results/runs/", properties={"name": f"{len(chosen)} records: <case>/<launch>/"}
    )
    for row in {row["case"]: row for row in chosen.to_pylist()}.values():
        title = f"{row['suite']} {row['experiment']}, arm {row['arm']}, {row['ranks']} ranks, {row['evidence']}"
        name = f"results/runs/{row['case']}/"
        crate.add_dataset(folder / name, name, properties={"name": title, "identifier": row["case"]})
    for suite_name, suite in suites.items():
        name = f"suites/{suite_name}/"
        crate.add_dataset(folder / name, name, properties={"name": f"suite {suite_name}: {suite.title}"})


def _file_descriptions() -> dict[str, str]:
    """One line about each file that every crate has, by its name in the crate."""
    return {
        **{f"tables/{name}.parquet": description for name, description in TABLES.items()},
        "README.md": "what is where, and how to judge again",
        **{_project_file(name): description for name, description in _PROJECT_FILES.items()},
        "environment/packages.txt": "every Python package of the environment that made this crate",
    }


def _project_file(name: str) -> str:
    """Name in the crate of a file of the project."""
    return name if name in ("LICENSE", "CITATION.cff") else f"environment/{name}"


def _zip(folder: Path, target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))


def _title(chosen: pa.Table) -> str:
    return f"Scaleproof results: {', '.join(sorted(set(chosen['suite'].to_pylist())))}"


def _citation() -> dict[str, Any]:
    path = PROJECT / "CITATION.cff"
    citation: dict[str, Any] = yaml.safe_load(path.read_text()) if path.exists() else {}
    return citation


def _name(author: Mapping[str, str]) -> str:
    return author.get("name") or " ".join(filter(None, (author.get("given-names"), author.get("family-names"))))
