"""The paper's micro-benchmark: a tensor is sent from rank 0 to rank 1, which computes its largest element and returns
it.

A sample is the time on rank 0 from the start of the send until the answer has arrived, for any mechanism of remote/
over any transport. Content is verified before and after the samples of a size. Copies, messages and round trips are
counted over all tensors of the size, at both ends; so are the packets that the interface of each rank sent.
"""

from __future__ import annotations

import time
from dataclasses import fields, replace

from suite_programs import tuning

from scaleproof.core.context import RankContext
from scaleproof.core.counters import Counters, difference, read_counters
from scaleproof.core.recorder import now
from scaleproof.programs.common import first_use, repetitions, timed_iterations, timed_region
from scaleproof.programs.payload import differing, pattern
from scaleproof.remote.tensor_channel import Edge, TensorChannel, TransferCounts, shared_channel
from scaleproof.spec import registry
from scaleproof.spec.case import OwnCase

ITEM = 4
PEERS = 2
LEAST = 7.0
"""Larger than any element of the pattern. Position and value of the largest element change with every tensor."""


def run(context: RankContext) -> None:
    """See the module. Options: `mechanism`, and those of programs/tuning.py."""
    case = context.case
    assert isinstance(case, OwnCase) and case.transport is not None
    tuning.apply(context, case)
    transport = registry.load("transport", case.transport).connect(context)
    with timed_region(context, transport):
        for nbytes in case.sizes:
            context.at(-1, f"channel for {nbytes} B")
            tensor, answer = edges(case, nbytes)
            with shared_channel(case.options["mechanism"], transport, [tensor, answer], context) as channel:
                _Size(context, case, channel, tensor, answer).run()


def edges(case: OwnCase, nbytes: int) -> tuple[Edge, Edge]:
    """The edges of the tensor and of the answer."""
    static = case.options["mechanism"] != "dynamic"
    return Edge("tensor", 0, 1, (nbytes // ITEM,), static=static), Edge("answer", 1, 0, (1,), static=static)


class _Size:
    """All tensors of one size."""

    def __init__(self, context: RankContext, case: OwnCase, channel: TensorChannel, tensor: Edge, answer: Edge) -> None:
        self.context, self.case, self.channel, self.tensor, self.answer = context, case, channel, tensor, answer
        self.born = channel.outgoing(tensor if context.rank == 0 else answer, None)
        self.position = 0

    def run(self) -> None:
        """Verify, run the timed tensors, verify again."""
        self._verified("first")
        before = replace(self.channel.counts.of(self.tensor))
        processor, counters = time.process_time(), read_counters()
        for iteration in timed_iterations(self.context, self.case.warmup, repetitions(self.case, self.tensor.nbytes)):
            self.context.at(iteration, f"tensor of {self.tensor.nbytes} B", 1 - self.context.rank)
            if self.context.rank == 0:
                self._request(iteration)
            elif self.context.rank < PEERS:
                self._answer(iteration)
        self._keep(before, time.process_time() - processor, counters)
        self._verified("last")

    def _request(self, iteration: int) -> None:
        """On rank 0: change the tensor, send it, wait for the answer. Only sending and waiting are timed."""
        self.born[self.position] = 0
        self.position = iteration * 4099 % self.born.size
        self.born[self.position] = expected = LEAST + iteration
        start = now()
        sent = self.channel.send(self.tensor, self.born)
        largest = float(self.channel.recv(self.answer).wait()[0])
        end = now()
        self.channel.release(self.answer)
        sent.wait()
        self.context.recorder.add("send_reduce", iteration, start, end, self.tensor.nbytes)
        if largest != expected:
            self.context.check(f"largest.{self.tensor.nbytes}.{iteration}", False, f"{largest} instead of {expected}")

    def _answer(self, iteration: int) -> None:
        """On rank 1: receive the tensor and send back its largest element."""
        received = self.channel.recv(self.tensor).wait()
        with self.context.recorder.span("reduce_max", iteration, self.tensor.nbytes):
            self.born[0] = received.max()
        sent = self.channel.send(self.answer, self.born)
        self.channel.release(self.tensor)
        sent.wait()

    def _verified(self, when: str) -> None:
        """Checks the whole content, with different patterns before and after the samples."""
        expected = pattern(self.tensor.shape[0], "float32", len(when))
        if self.context.rank == 0:
            self.born[:] = expected
            with (
                first_use(self.context, self.tensor.nbytes)
                if when == "first"
                else self.context.recorder.span("verify", -1)
            ):
                self.channel.send(self.tensor, self.born).wait()
        elif self.context.rank < PEERS:
            wrong = differing(self.channel.recv(self.tensor).wait(), expected)
            self.channel.release(self.tensor)
            self.context.check(
                f"content.{self.tensor.nbytes}.{when}", not wrong, f"{wrong} of {self.tensor.shape[0]} elements differ"
            )

    def _keep(self, before: TransferCounts, processor_s: float, counters: Counters) -> None:
        """Records the costs on this rank of the tensors between the two verified ones. The first tensor of an edge may
        cost more, because its shape is not yet known."""
        after = self.channel.counts.of(self.tensor)
        cost = {item.name: getattr(after, item.name) - getattr(before, item.name) for item in fields(TransferCounts)}
        moved = difference(counters, read_counters()).get(self.case.interface, {})
        self.context.facts.setdefault("costs", {})[str(self.tensor.nbytes)] = cost | {
            "processor_s": processor_s,
            "packets": moved.get("tx_packets"),
        }
