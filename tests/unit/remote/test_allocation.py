"""Allocation sites: tensors are copied in the first step and afterwards allocated in the memory they are sent from,
with the same bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from scaleproof.remote.allocation_sites import AllocationSites, BirthCounts


class Sender:
    """Sends the gradients of a module, each from its own memory, like a worker of a parameter server."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.sites = module, AllocationSites()
        self.memory = [np.full(parameter.numel(), np.nan, np.float32) for parameter in module.parameters()]
        self.reference: list[torch.Tensor] = []
        for parameter, memory in zip(module.parameters(), self.memory, strict=True):
            parameter.register_post_accumulate_grad_hook(self.hook(memory))

    def hook(self, memory: np.ndarray) -> Callable[[torch.Tensor], None]:
        def ready(parameter: torch.Tensor) -> None:
            assert parameter.grad is not None
            self.sites.place(parameter.grad, lambda shape: memory)
            self.reference.append(parameter.grad.clone())
            parameter.grad = None

        return ready

    def step(self, inputs: torch.Tensor) -> BirthCounts:
        self.sites.begin()
        for memory in self.memory:
            memory.fill(np.nan)
        loss = self.module(inputs).square().mean()
        with self.sites:
            loss.backward()
        return self.sites.births

    def expected(self, inputs: torch.Tensor) -> list[np.ndarray]:
        gradients = torch.autograd.grad(self.module(inputs).square().mean(), list(self.module.parameters()))
        return [gradient.numpy().reshape(-1) for gradient in gradients]


def same_bits(sender: Sender, inputs: torch.Tensor) -> bool:
    return all(
        memory.tobytes() == gradient.tobytes()
        for memory, gradient in zip(sender.memory, sender.expected(inputs), strict=True)
    )


def test_every_send_is_copied_in_the_first_step_and_none_afterwards() -> None:
    sender = Sender(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)))
    inputs = torch.randn(5, 8)
    assert (sender.step(inputs), same_bits(sender, inputs)) == (BirthCounts(0, 4, 4 * (8 * 16 + 16 + 16 * 4 + 4)), True)
    for _ in range(3):
        inputs = torch.randn(5, 8)
        assert (sender.step(inputs), same_bits(sender, inputs)) == (BirthCounts(4, 0, 0), True)


def test_a_gradient_that_is_a_sum_over_uses_is_born_where_the_first_use_allocates_it() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(torch.tanh(self.layer(x)))

    sender = Sender(Twice())
    for step in range(3):
        inputs = torch.randn(5, 6)
        births = sender.step(inputs)
        assert same_bits(sender, inputs)
        assert births.copied == (2 if step == 0 else 0)


def test_a_convolutions_gradients_are_copied_in_every_step_and_counted() -> None:
    sender = Sender(nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 4)))
    inputs = torch.randn(2, 3, 8, 8)
    sender.step(inputs)
    births = sender.step(inputs)
    assert (births.placed, births.copied, births.copied_bytes) == (2, 2, 4 * (8 * 27 + 8))
    assert same_bits(sender, inputs)


def test_a_batch_of_another_size_is_born_in_memory_of_its_size() -> None:
    sites, layer = AllocationSites(), nn.Linear(8, 4)
    shapes: list[tuple[int, ...]] = []
    held: list[np.ndarray] = []

    def memory(shape: tuple[int, ...]) -> np.ndarray:
        shapes.append(shape)
        held.append(np.zeros(shape, np.float32))
        return held[-1]

    for batch in (5, 5, 9, 3):
        inputs = torch.randn(batch, 8)
        sites.begin()
        with torch.no_grad(), sites:
            hidden = torch.tanh(inputs @ layer.weight.t())
        in_place = sites.place(hidden, memory)
        assert in_place == (len(shapes) > 1)
        assert shapes[-1] == (batch, 4) and np.array_equal(
            held[-1], torch.tanh(inputs @ layer.weight.t()).detach().numpy()
        )


def test_a_part_of_a_buffer_is_copied_and_its_site_stays_as_it_is() -> None:
    sites, memory = AllocationSites(), np.zeros((2, 4), np.float32)
    for _ in range(2):
        sites.begin()
        with sites:
            buffer = torch.ones(4, 4) + 1
        assert not sites.place(buffer[:2], lambda shape: memory)
    assert (memory == 2).all() and sites.births == BirthCounts(0, 1, 32)


def test_a_buffer_at_the_address_of_one_that_is_gone_is_not_taken_for_it() -> None:
    sender = Sender(
        nn.Sequential(
            nn.Conv2d(3, 8, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, padding=1),
            nn.Flatten(),
            nn.Linear(8 * 9, 4),
        )
    )
    for step in range(8):
        inputs = torch.randn(4 - step % 3, 3, 8, 8)
        births = sender.step(inputs)
        assert same_bits(sender, inputs) and births.copied == (6 if step == 0 else 4)
