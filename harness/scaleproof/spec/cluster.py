"""Clusters: nodes, switches and the links between them, as the emulator builds them and the simulator reckons with
them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from scaleproof.paths import PROJECT
from scaleproof.spec.errors import SpecError
from scaleproof.spec.locate import Document, Key, read_document
from scaleproof.spec.messages import form_error
from scaleproof.spec.registry import nearest
from scaleproof.spec.straggler_law import straggler_law

if TYPE_CHECKING:
    from scaleproof.spec.common_case import CommonCase

ROOT = PROJECT / "clusters"
MOST_NODES = 64_000
"""Addresses of nodes: 250 in each of the 256 smaller networks of 10.77.0.0/16."""
NODE_TYPES, GPU_NODE_TYPES, GPUS = "nodes.yaml", "gpu_nodes.yaml", "gpus.yaml"
SWITCH = "switch"
"""The one switch of a star."""


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


Form = TypeVar("Form", bound=_Form)


class StatedJitter(_Form):
    """How unevenly ranks on a node type compute: a law (straggler_law.py) with its numbers, and where they are said."""

    law: str
    source: str

    @field_validator("law")
    @classmethod
    def _has_numbers(cls, text: str) -> str:
        if not straggler_law(text).numbers:
            raise ValueError(f"{text!r} has no numbers of its own; write for example spread:0.02,0.05")
        return text


class NodeType(_Form):
    """What the cores of a node compute at their peak, and where that is said. `jitter`: None, ranks compute evenly."""

    summary: str
    cores: PositiveInt
    ghz: PositiveFloat
    flop_per_cycle: PositiveInt
    jitter: StatedJitter | None = None
    source: str

    @property
    def peak_flops(self) -> float:
        """FLOP/s of all cores."""
        return self.cores * self.ghz * 1e9 * self.flop_per_cycle


class Rate(_Form):
    """Of a link, each direction. `gbit`: wire rate in Gbit/s; `delay_us`: one way, in microseconds."""

    gbit: PositiveFloat
    delay_us: NonNegativeFloat = 0.0


class LinkForm(Rate):
    """Between two places, each `nodeN` or a switch's name; `count`: parallel links."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)]
    count: PositiveInt = 1


class StarRate(Rate):
    """`gbit_range`: a 95 % range of the rate, where it is not known; a prediction draws from it, all links alike."""

    gbit_range: Annotated[list[PositiveFloat], Field(min_length=2, max_length=2)] | None = None

    @model_validator(mode="after")
    def _around(self) -> Self:
        if self.gbit_range is not None and not self.gbit_range[0] <= self.gbit <= self.gbit_range[1]:
            raise ValueError(f"gbit_range {self.gbit_range} does not hold gbit {self.gbit:g}: write [low, high]")
        return self


class ClusterForm(_Form):
    """A star has one switch and a link to every node, any number of them. `links` spell a graph out over `nodes` nodes
    and `switches`."""

    summary: str
    source: str
    star: StarRate | None = None
    nodes: PositiveInt | None = None
    switches: list[str] = []
    links: list[LinkForm] = []


@dataclass(frozen=True, slots=True)
class Link:
    """One link; both directions have the rate (Mbit/s on the wire; None: as fast as it goes) and the delay (ms, one
    way)."""

    ends: tuple[str, str]
    mbit: float | None
    delay_ms: float
    count: int = 1
    """Parallel links to a switch, as of a node with several network cards: each has the rate, a message uses one."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """As many nodes as a case has, named node0, node1, ... `unsure`: the lowest and the highest rate of its links, as
    factors on what they state, with 95 %; None: the rates are known."""

    name: str
    nodes: int
    switches: tuple[str, ...]
    links: tuple[Link, ...]
    unsure: tuple[float, float] | None = None


def node_name(number: int) -> str:
    """Of node `number` in a description."""
    return f"node{number}"


def star(name: str, nodes: int, mbit: float | None, delay_ms: float, cards: int = 1) -> Cluster:
    """A switch with a link to every node, or one to each of its network cards."""
    links = tuple(Link((node_name(number), SWITCH), mbit, delay_ms, cards) for number in range(nodes))
    return Cluster(name, nodes, (SWITCH,), links)


def cluster_of(case: CommonCase) -> Cluster:
    """The case's cluster, before `dilation` and `shrink`; SpecError when its description does not fit. A delay in the
    case is that of the whole way from node to node, so each link of the star has half of it."""
    if case.nodes > MOST_NODES:
        raise SpecError(f"{case.nodes} nodes, and addresses for {MOST_NODES}")
    described = case.value("fabric.cluster")
    if described is None:
        mbit, delay_ms = case.value("fabric.link_mbit"), case.value("fabric.link_delay_ms", 0.0) / 2
        return star("uniform", case.nodes, mbit, delay_ms, case.value("fabric.cards", 1))
    return load_cluster(described, case.nodes)


def slowed(cluster: Cluster, dilation: float, shrink: float) -> Cluster:
    """As it is built: rates lower by both factors, delays longer by `dilation`."""
    links = tuple(
        replace(link, mbit=link.mbit and link.mbit / dilation / shrink, delay_ms=link.delay_ms * dilation)
        for link in cluster.links
    )
    return replace(cluster, links=links)


def sent_at_once_mbit(cluster: Cluster) -> float | None:
    """What all nodes together may send at a time, each over all of its links, Mbit/s; None where a link has no rate."""
    nodes, total = {node_name(number) for number in range(cluster.nodes)}, 0.0
    for link in cluster.links:
        if ends := sum(end in nodes for end in link.ends):
            if link.mbit is None:
                return None
            total += ends * link.count * link.mbit
    return total


def ready_clusters() -> list[str]:
    """Names of the descriptions in clusters/."""
    return sorted(path.stem for path in ROOT.glob("*.yaml") if path.name not in (NODE_TYPES, GPU_NODE_TYPES, GPUS))


def load_cluster(name: str, nodes: int) -> Cluster:
    """A description by name, or by the path of a file that ends in .yaml, for so many nodes. `NAME[0,2,5]`: these nodes
    of a graph, which are then node0, node1 and node2, and the links between them and to switches."""
    name, chosen = allocation_of(name)
    file = _file_of(name)
    modified = file.stat().st_mtime_ns if file.exists() else 0
    if chosen is None:
        return _read_cluster(file.absolute(), nodes, modified)
    if nodes != len(chosen):
        raise SpecError(f"cluster {name}{list(chosen)} has {len(chosen)} nodes, not {nodes}")
    return _allocated(_read_cluster(file.absolute(), described_nodes(name), modified), chosen)


def allocation_of(name: str) -> tuple[str, tuple[int, ...] | None]:
    """The name of a description, and the nodes that are chosen of it; None: all."""
    found = re.fullmatch(r"(.+)\[([0-9]+(?:, ?[0-9]+)*)\]", name)
    if found is None:
        return name, None
    chosen = tuple(int(number) for number in found[2].split(","))
    if len(set(chosen)) < len(chosen):
        raise SpecError(f"cluster {name!r} names a node twice")
    return found[1], chosen


def _allocated(whole: Cluster, chosen: tuple[int, ...]) -> Cluster:
    if missing := [number for number in chosen if number >= whole.nodes]:
        raise SpecError(f"cluster {whole.name} has no node {missing[0]}; it has 0 to {whole.nodes - 1}")
    renamed = {node_name(number): node_name(place) for place, number in enumerate(chosen)}
    renamed |= {switch: switch for switch in whole.switches}
    links = tuple(
        replace(link, ends=(renamed[link.ends[0]], renamed[link.ends[1]]))
        for link in whole.links
        if set(link.ends) <= set(renamed)
    )
    name = f"{whole.name}[{','.join(map(str, chosen))}]"
    cluster = Cluster(name, len(chosen), whole.switches, links)
    if unreached := _unreached(cluster, [node_name(number) for number in range(len(chosen))]):
        raise SpecError(f"cluster {name}: no way from its first node to {', '.join(unreached)}")
    return cluster


def described_nodes(name: str) -> int:
    """How many nodes a description of a graph has, or how many are chosen of it."""
    name, chosen = allocation_of(name)
    if chosen is not None:
        return len(chosen)
    document = read_document(_file_of(name))
    form = _parsed(document, (), document.data, ClusterForm)
    if form.nodes is None:
        raise document.error((), "a star has as many nodes as a case; give a graph with `nodes` and `links`")
    return form.nodes


def _file_of(name: str) -> Path:
    """SpecError, with the nearest name, for a description that is not there."""
    file = Path(name) if name.endswith((".yaml", ".yml")) else ROOT / f"{name}.yaml"
    if not name.endswith((".yaml", ".yml")) and not file.exists():
        raise SpecError(f"unknown cluster {name!r}; {nearest(name, ready_clusters())}")
    return file


@lru_cache
def _read_cluster(file: Path, nodes: int, modified_ns: int) -> Cluster:
    """Read again when the file was modified: a suite has hundreds of cases on the same few clusters."""
    document = read_document(file)
    form = _parsed(document, (), document.data, ClusterForm)
    if form.star is not None:
        if form.links or form.switches or form.nodes:
            raise document.error(("star",), "a star has no links, switches or nodes beside it")
        known = star(file.stem, nodes, form.star.gbit * 1000, form.star.delay_us / 1000)
        if form.star.gbit_range is None:
            return known
        low, high = form.star.gbit_range
        return replace(known, unsure=(low / form.star.gbit, high / form.star.gbit))
    return _graph(document, form, file.stem, nodes)


def _graph(document: Document, form: ClusterForm, name: str, nodes: int) -> Cluster:
    if form.nodes is None or not form.links:
        raise document.error((), "give either `star`, or `nodes` and `links`")
    if nodes > form.nodes:
        raise document.error(("nodes",), f"{nodes} nodes asked for, the description has {form.nodes}")
    places = [node_name(number) for number in range(form.nodes)] + form.switches
    links = []
    for index, link in enumerate(form.links):
        for end in link.between:
            if end not in places:
                raise document.error(("links", index, "between"), f"unknown place {end!r}; {nearest(end, places)}")
        if link.between[0] == link.between[1]:
            raise document.error(("links", index, "between"), "a link has two different ends")
        links += [Link((link.between[0], link.between[1]), link.gbit * 1000, link.delay_us / 1000)] * link.count
    cluster = Cluster(name, nodes, tuple(form.switches), tuple(links))
    if unreached := _unreached(cluster, places[: form.nodes]):
        raise document.error(("links",), f"no way from node0 to {', '.join(unreached)}")
    return cluster


def _unreached(cluster: Cluster, nodes: list[str]) -> list[str]:
    """Nodes that node0 has no way to."""
    import networkx  # takes half a second, which only graphs need

    graph = networkx.Graph(link.ends for link in cluster.links)
    graph.add_nodes_from(nodes)
    return sorted(set(nodes) - networkx.node_connected_component(graph, node_name(0)))


def node_types(file: Path = ROOT / NODE_TYPES) -> dict[str, NodeType]:
    """Every node type of clusters/nodes.yaml, or of another file."""
    document = read_document(file)
    if not isinstance(document.data, dict):
        raise document.error((), "empty or no mapping of node types by name")
    return {name: _parsed(document, (name,), form, NodeType) for name, form in document.data.items()}


def _parsed(document: Document, path: Key, data: Any, kind: type[Form]) -> Form:
    try:
        return kind.model_validate(data)
    except ValidationError as failed:
        raise form_error(document, path, kind, failed) from None
