"""A case that names a missing interface, device or GID gets a one-line error with the key and the existing names."""

from __future__ import annotations

import pytest

from scaleproof.fabric import host
from scaleproof.fabric.guests.guests import Guests
from scaleproof.fabric.host import Host
from scaleproof.fabric.verbs import Port


def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has an InfiniBand port."""
    monkeypatch.setattr(host, "ports", lambda: [Port("mlx5_0", 1, "ACTIVE", "InfiniBand", 1, (), (), False)])


@pytest.mark.parametrize(
    ("interface", "message"),
    [("lo0", "did you mean 'lo'?"), ("mlx5_9:1", "did you mean 'mlx5_0:1'?"), ("rxe0:1:900", "mlx5_0:1")],
)
def test_a_wrong_interface_names_the_nearest_one(interface: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device(monkeypatch)
    obstacle = Host(interface).obstacle()
    assert obstacle is not None
    why, advice = obstacle
    assert why.startswith(f"unknown interface {interface!r}; ") and message in why
    assert "`interface`" in advice and "\n" not in why + advice


def test_all_interfaces_are_listed_when_none_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    device(monkeypatch)
    obstacle = Host("zzzz").obstacle()
    assert (
        obstacle is not None and "known: " in obstacle[0] and "lo" in obstacle[0] and obstacle[0].endswith("mlx5_0:1")
    )


@pytest.mark.parametrize("interface", ["nope0", "rxe0:1:900"])
def test_nodes_of_guests_name_their_only_interface(interface: str) -> None:
    obstacle = Guests(interface).obstacle()
    assert obstacle == (
        f"nodes of fabric guests have no interface {interface!r}",
        "leave `interface` out, or name 'eth0'",
    )
