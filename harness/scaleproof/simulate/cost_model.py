"""Costs of one message and one reduced byte in a simulation, with their uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scaleproof.simulate.alpha_beta_fit import Segment
from scaleproof.simulate.device_costs import DeviceCosts
from scaleproof.simulate.gamma_between import gamma_between
from scaleproof.simulate.hop_classes import Hop, hop_class
from scaleproof.simulate.thread_times import ProcessorTime, TensorTimes
from scaleproof.simulate.uncertain import Uncertain


@dataclass(frozen=True, slots=True)
class HopCosts:
    """alpha (s per message) and beta (s per byte in software, a lower bound on the time per byte) by message size, and
    what `sending` and `receiving` take of a core, on one class of hops."""

    segments: tuple[Segment, ...]
    sending: ProcessorTime = ProcessorTime()
    receiving: ProcessorTime = ProcessorTime()

    def alpha(self, nbytes: np.ndarray) -> np.ndarray:
        """alpha in s of messages of `nbytes`."""
        return self._of(nbytes, [segment.alpha for segment in self.segments])

    def beta(self, nbytes: np.ndarray) -> np.ndarray:
        """beta in s per byte of messages of `nbytes`."""
        return self._of(nbytes, [segment.beta for segment in self.segments])

    def times(self, alpha: float, beta: float, cores: float) -> HopCosts:
        """The same with other alphas, betas and times of cores."""
        segments = (Segment(each.upto_nbytes, each.alpha * alpha, each.beta * beta) for each in self.segments)
        return HopCosts(tuple(segments), self.sending.times(cores), self.receiving.times(cores))

    def _of(self, nbytes: np.ndarray, values: list[float]) -> np.ndarray:
        if len(values) == 1:
            return np.full(len(nbytes), values[0])
        cuts = [float(segment.upto_nbytes or 0) for segment in self.segments[:-1]]
        return np.array(values)[np.searchsorted(cuts, nbytes, side="left")]


@dataclass(frozen=True, slots=True)
class DeviceModel:
    """How far the model of calls between GPUs may be wrong, for small calls and for those from `large_nbytes` on."""

    small: Uncertain
    large: Uncertain
    large_nbytes: float


@dataclass(frozen=True, slots=True)
class MessageCosts:
    """`segments`: alpha and beta of a message, see HopCosts; gamma (s per byte reduced), and `gammas` of some
    footprints (see CostModel), in bytes; `goodput`: share of a link's rate
    that is payload. `others`: classes of hops that have costs of their own; `within_node`: the class of messages
    between two ranks of a node; `threads`: of a process, that send and receive at the same time; `device`: of calls
    between GPUs that a model predicts as a whole. `call`: s of a rank for each collective call; `handover`: s from one
    thread of a rank to another."""

    segments: tuple[Segment, ...]
    gamma: float
    goodput: float = 1.0
    sending: ProcessorTime = ProcessorTime()
    receiving: ProcessorTime = ProcessorTime()
    others: tuple[tuple[Hop, HopCosts], ...] = ()
    within_node: Hop = "loopback"
    threads: int = 1
    device: DeviceCosts = DeviceCosts()
    call: float = 0.0
    handover: float = 0.0
    gammas: tuple[tuple[float, float], ...] = ()
    tensors: TensorTimes = TensorTimes()

    def with_footprint(self, nbytes: float) -> MessageCosts:
        """With the gamma of so many bytes."""
        if not self.gammas:
            return self
        sizes, values = map(np.array, zip(*self.gammas, strict=True))
        return replace(self, gamma=gamma_between(nbytes, sizes, values))

    def hop(self, links: int) -> Hop:
        """The class of a message whose route has so many links."""
        return hop_class(links, self.within_node)

    def on(self, hop: Hop) -> HopCosts:
        """Costs on a class of hops."""
        own = next((costs for name, costs in self.others if name == hop), None)
        return HopCosts(self.segments, self.sending, self.receiving) if own is None else own

    @property
    def take_cores(self) -> bool:
        """Whether messages take time of a core, on any hop."""
        return any(
            side != ProcessorTime()
            for costs in (self.on("one_link"), *(costs for _, costs in self.others))
            for side in (costs.sending, costs.receiving)
        )

    def times(
        self,
        alpha: float = 1.0,
        beta: float = 1.0,
        gamma: float = 1.0,
        cores: float = 1.0,
        links: float = 1.0,
        call: float = 1.0,
    ) -> MessageCosts:
        """The same with costs times these factors, on all hops; `links`: on the time that a link needs per byte."""
        base = HopCosts(self.segments, self.sending, self.receiving).times(alpha, beta, cores)
        return replace(
            self,
            segments=base.segments,
            sending=base.sending,
            receiving=base.receiving,
            others=tuple((hop, other.times(alpha, beta, cores)) for hop, other in self.others),
            gamma=self.gamma * gamma,
            gammas=tuple((nbytes, value * gamma) for nbytes, value in self.gammas),
            goodput=self.goodput / links,
            device=self.device.times(alpha, beta),
            call=self.call * call,
            handover=self.handover * call,
            tensors=self.tensors.times(cores),
        )

    def alpha(self, nbytes: np.ndarray, hops: Sequence[Hop] | np.ndarray = ()) -> np.ndarray:
        """alpha in s of messages of `nbytes`; `hops`: the class of each, where costs differ."""
        return self._each(nbytes, hops, HopCosts.alpha)

    def beta(self, nbytes: np.ndarray, hops: Sequence[Hop] | np.ndarray = ()) -> np.ndarray:
        """beta in s per byte of messages of `nbytes`."""
        return self._each(nbytes, hops, HopCosts.beta)

    def _each(
        self, nbytes: np.ndarray, hops: Sequence[Hop] | np.ndarray, cost: Callable[[HopCosts, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        values = cost(HopCosts(self.segments), nbytes)
        if self.others and len(hops):
            kinds = np.array(hops)
            for hop, costs in self.others:
                chosen = kinds == hop
                values[chosen] = cost(costs, nbytes[chosen])
        return values


FREE = MessageCosts((Segment(None, 0.0, 0.0),), 0.0, device=DeviceCosts(latency=0.0, per_byte=0.0))
"""Messages whose only cost is the links."""


@dataclass(frozen=True, slots=True)
class HopModel:
    """Costs on one class of hops with their uncertainty. `card`: s a message that a network card adds to alpha;
    `processor`: s a message and s a byte of a core to send, then to receive; empty: none."""

    hop: Hop
    upto_nbytes: tuple[int | None, ...]
    alphas: tuple[Uncertain, ...]
    betas: tuple[Uncertain, ...]
    card: Uncertain | None = None
    processor: tuple[Uncertain, ...] = ()

    def costs(self, value_of: Callable[[Uncertain], float]) -> HopCosts:
        """With every parameter at a value."""
        more = value_of(self.card) if self.card is not None else 0.0
        parts = zip(self.upto_nbytes, self.alphas, self.betas, strict=True)
        sides = [value_of(each) for each in self.processor] or [0.0] * 4
        return HopCosts(
            tuple(Segment(upto, value_of(alpha) + more, value_of(beta)) for upto, alpha, beta in parts),
            ProcessorTime(*sides[:2]),
            ProcessorTime(*sides[2:]),
        )

    @property
    def parameters(self) -> Iterator[Uncertain]:
        """All parameters."""
        yield from (*self.alphas, *self.betas, *((self.card,) if self.card is not None else ()), *self.processor)


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors on costs, for a control that shows what a prediction owes to one; that on `beta` is one on the links'
    time per byte, too, and that on `call` one on hand-overs between threads."""

    alpha: float = 1.0
    beta: float = 1.0
    gamma: float = 1.0
    processor: float = 1.0
    call: float = 1.0


@dataclass(frozen=True, slots=True)
class Gamma:
    """s per byte reduced where the footprint is `nbytes`."""

    nbytes: int
    value: Uncertain


@dataclass(frozen=True, slots=True)
class CostModel:
    """Message costs with their uncertainty, of messages between nodes; `others`: of further classes of hops. `source`:
    where they come from; `assumed`: assumptions that were not measured. `footprint`: bytes that the ranks of a machine
    go through before they use the same byte again, which decides how fast they reduce."""

    upto_nbytes: tuple[int | None, ...]
    alphas: tuple[Uncertain, ...]
    betas: tuple[Uncertain, ...]
    gammas: tuple[Gamma, ...]
    goodput: float
    source: str
    assumed: tuple[str, ...] = ()
    card: Uncertain | None = None
    processor: tuple[Uncertain, ...] = ()
    others: tuple[HopModel, ...] = ()
    within_node: Hop = "loopback"
    threads: int = 1
    factors: Factors = Factors()
    device: DeviceModel | None = None
    footprint: float = 0.0
    call: Uncertain = Uncertain("time of a call", 0.0)
    handover: Uncertain = Uncertain("hand-over between threads", 0.0)
    tensors: tuple[Uncertain, ...] = ()
    """What servers take for a tensor, in the order of TensorTimes."""

    def central(self) -> MessageCosts:
        """Every parameter at its value."""
        return self._costs(lambda parameter: parameter.value)

    def drawn(self, seed: int) -> MessageCosts:
        """Every parameter drawn from its uncertainty. Under one seed, parameters with equal names get equal draws in
        all cases."""
        return self._costs(lambda parameter: parameter.drawn(seed))

    def _costs(self, value_of: Callable[[Uncertain], float]) -> MessageCosts:
        base, factors = self._base.costs(value_of), self.factors
        costs = MessageCosts(
            base.segments,
            0.0,
            self.goodput,
            base.sending,
            base.receiving,
            tuple((other.hop, other.costs(value_of)) for other in self.others),
            self.within_node,
            self.threads,
            self._device(value_of),
            value_of(self.call),
            value_of(self.handover),
            tuple((gamma.nbytes, value_of(gamma.value)) for gamma in self.gammas),
            TensorTimes(*(value_of(each) for each in self.tensors)),
        ).with_footprint(self.footprint)
        return costs.times(factors.alpha, factors.beta, factors.gamma, factors.processor, factors.beta, factors.call)

    def _device(self, value_of: Callable[[Uncertain], float]) -> DeviceCosts:
        if self.device is None:
            return DeviceCosts()
        small, large = value_of(self.device.small), value_of(self.device.large)
        return DeviceCosts(small=small, large=large, large_nbytes=self.device.large_nbytes)

    @property
    def _base(self) -> HopModel:
        return HopModel("one_link", self.upto_nbytes, self.alphas, self.betas, self.card, self.processor)

    @property
    def parameters(self) -> tuple[Uncertain, ...]:
        """All parameters, each once, and then the factors that several of them share."""
        messages = [parameter for part in (self._base, *self.others) for parameter in part.parameters]
        gammas = [*(gamma.value for gamma in self.gammas), *self.tensors]
        own = dict.fromkeys([*messages, *gammas, *(each for each in (self.call, self.handover) if each.value)])
        shared = dict.fromkeys(parameter.scale for parameter in own if parameter.scale is not None)
        device = () if self.device is None else (self.device.small, self.device.large)
        return (*own, *shared, *device)

    def also_assumed(self, *more: str) -> CostModel:
        """A copy with further assumptions."""
        return replace(self, assumed=(*self.assumed, *more))
