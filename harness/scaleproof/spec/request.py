"""What an experiment asks a cluster for: nodes, tasks on each, GPUs, a kind of node, time. It is no part of a case: the
same launches run wherever they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt

from scaleproof.spec.case import AnyCase
from scaleproof.spec.estimate import estimate

START_MIN, SLACK, MOST_MIN = 5, 3, 1440
"""Of the default time limit: minutes until the first launch and after the last one, how many times as long as reckoned
the launches may take, and at most a day, which most clusters give: a job that was too short goes on in the next one."""


class RequestForm(BaseModel):
    """The key `allocation` of an experiment, or of one of its sizes, which goes over it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    nodes: PositiveInt | None = Field(
        None, description="Nodes (Slurm's --nodes); null: one for each rank of the largest case of fabric host."
    )
    tasks_per_node: PositiveInt | None = Field(
        None, description="Ranks of a node; null: the ranks of the largest case over the nodes."
    )
    gpus: NonNegativeInt | None = Field(None, description="GPUs of each node (--gres=gpu:N).")
    constraint: Annotated[str, Field(min_length=1)] | None = Field(
        None, description="Kind of node (--constraint); null: any."
    )
    exclusive: bool | None = Field(
        None, description="Whether nodes are not shared with other jobs (--exclusive); null: true."
    )
    time_limit_min: PositiveInt | None = Field(
        None,
        description="Time limit in minutes (--time); null: three times the estimated time of all launches, and a few "
        "minutes; at most a day.",
    )

    def over(self, other: RequestForm) -> RequestForm:
        """What is said here goes over the other."""
        return other.model_copy(update=self.model_dump(exclude_none=True))


@dataclass(frozen=True, slots=True)
class Request:
    """One job's. `gpus` are those of a node; minutes."""

    nodes: int
    tasks_per_node: int
    cpus_per_task: int
    gpus: int
    constraint: str | None
    exclusive: bool
    time_limit_min: int

    @property
    def tasks(self) -> int:
        """Of all nodes."""
        return self.nodes * self.tasks_per_node


def request(form: RequestForm, cases: Sequence[AnyCase], launches: int, deadline_s: float) -> Request:
    """Where nothing is given: a node for each rank of the largest case that takes the network as it is, since other
    cases make their nodes themselves; nodes alone; and time for `launches` of each case and for one that hangs until
    its deadline."""
    most = max((case.ranks for case in cases if case.plugin("fabric").evidence == "measured"), default=1)
    nodes = form.nodes or most
    seconds = sum(estimate(case).seconds for case in cases) * launches * SLACK + deadline_s
    return Request(
        nodes=nodes,
        tasks_per_node=form.tasks_per_node or ceil(most / nodes),
        cpus_per_task=max(case.threads_per_rank for case in cases),
        gpus=form.gpus or 0,
        constraint=form.constraint,
        exclusive=form.exclusive is not False,
        time_limit_min=form.time_limit_min or min(START_MIN + ceil(seconds / 60), MOST_MIN),
    )
