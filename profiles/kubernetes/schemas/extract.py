"""Makes kubernetes.json and pytorchjob-v1.json from two published packages: `python extract.py PACKAGES`, a folder with
both unpacked. README.md names them."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CORE = "kubernetes.json"
ROOTS = ("io.k8s.api.batch.v1.Job", "io.k8s.api.core.v1.Secret", "io.k8s.api.core.v1.Pod")
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
LEFT_OUT = {
    "io.k8s.api.batch.v1.Job": {"status"},
    "io.k8s.api.batch.v1.JobSpec": {"podFailurePolicy", "scheduling", "successPolicy"},
    "io.k8s.api.core.v1.Pod": {"status"},
    "io.k8s.api.core.v1.PodSpec": {"ephemeralContainers", "readinessGates", "resourceClaims", "schedulingGates"},
    "io.k8s.api.core.v1.Container": {"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"},
    META: {"managedFields"},
}
"""Fields that nothing of ours has; an object that uses one is refused, and then it has to be taken out of this list."""
VOLUMES = {"name", "configMap", "emptyDir", "hostPath", "nfs", "persistentVolumeClaim", "secret"}


def main(packages: Path) -> None:
    """Write one file per source."""
    (definitions,) = packages.rglob("v1.37.0-local-strict/_definitions.json")
    write_core(json.loads(definitions.read_text())["$defs"])
    (mappings,) = packages.rglob("class_generator/schema/__resources-mappings.json.gz")
    with gzip.open(mappings) as file:
        kinds = json.load(file)
    (published,) = kinds["pytorchjob"]
    write_pytorchjob(published)


def write_core(published: dict[str, Any]) -> None:
    """The objects in ROOTS and all that they refer to, but for LEFT_OUT and volumes that are not VOLUMES."""
    volume = published["io.k8s.api.core.v1.Volume"]["properties"]
    for name, gone in {**LEFT_OUT, "io.k8s.api.core.v1.Volume": volume.keys() - VOLUMES}.items():
        for each in gone:
            published[name]["properties"].pop(each, None)
    wanted = _closure(published, [*ROOTS, META])
    _write(CORE, {"$defs": {name: _terse(published[name]) for name in sorted(wanted)}})


def write_pytorchjob(published: dict[str, Any]) -> None:
    """Its own fields; pods in it are Kubernetes' own form, and what scales a job while it runs is left out."""
    published["properties"].pop("status", None)
    spec = published["properties"]["spec"]["properties"]
    spec["elasticPolicy"]["properties"].pop("metrics", None)
    replica = spec["pytorchReplicaSpecs"]["additionalProperties"]["properties"]
    replica["template"] = {"$ref": TEMPLATE}
    _write("pytorchjob-v1.json", _terse(published))


def _closure(published: dict[str, Any], names: list[str]) -> set[str]:
    """Everything that these definitions refer to."""
    found, left = set[str](), list(names)
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += [reference.rpartition("/")[2] for reference in _references(published[name])]
    return found


def _references(schema: Any) -> list[str]:
    if isinstance(schema, list):
        return [one for part in schema for one in _references(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
    return own + [one for part in schema.values() for one in _references(part)]


def _terse(schema: Any) -> Any:
    """Without the texts that describe it; references lead to our files."""
    if isinstance(schema, list):
        return [_terse(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _terse(part) for key, part in schema.items() if not (key == "description" and isinstance(part, str))}
    if isinstance(kept.get("$ref"), str):
        kept["$ref"] = f"{CORE}#/$defs/{kept['$ref'].rpartition('/')[2]}"
    return kept


def _write(name: str, schema: dict[str, Any]) -> None:
    (HERE / name).write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
