"""Files of a launch's folder that become part of its record besides samples and logs."""

from __future__ import annotations

from pathlib import Path

from scaleproof.fabric.capture import FILE as CAPTURED
from scaleproof.launch.nodes.received_files import ARTIFACTS
from scaleproof.launch.watch.failure_signs import Watch
from scaleproof.record.write import RUN, SAMPLES_FILE
from scaleproof.workloads.profile import FILE as PROFILE

RESERVED = (RUN, SAMPLES_FILE, "record")
"""Names of the record's own files."""


def collect_artifacts(watch: Watch) -> list[str]:
    """Names of files in the launch's folder that ranks reported as artifacts. Files that nodes sent are moved there. An
    existing file is not overwritten, and a path outside the folder is ignored."""
    folder = watch.folder.resolve()
    names = {name for name in (CAPTURED, PROFILE) if (folder / name).is_file()}
    for _, report in sorted(watch.reports.items()):
        names |= {path.name for path in map(Path, report["artifacts"].values()) if _is_kept(path, folder)}
    return sorted(names)


def _is_kept(path: Path, folder: Path) -> bool:
    if path.name in RESERVED or path.suffix == ".log" or not path.is_file():  # logs are kept anyway
        return False
    parent = path.resolve().parent
    if parent == folder:
        return True
    from_node = parent.parent == folder and parent.name.startswith(f"{ARTIFACTS}-")
    if not from_node or (folder / path.name).exists():
        return False
    path.rename(folder / path.name)
    return True
