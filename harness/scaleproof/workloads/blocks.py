"""Collects the table of a network with branches: every call adds layers and gives the name of the last one."""

from __future__ import annotations

from scaleproof.workloads.layers import Concat, Conv, Depthwise, LayerSpec, Norm, Pad


class Blocks:
    """A table under construction. `scale` and `epsilon` are those of its batch normalisations."""

    def __init__(self, *, scale: bool = True, epsilon: float = 1e-3) -> None:
        self.table: list[LayerSpec] = []
        self._scale, self._epsilon = scale, epsilon

    def put(self, spec: LayerSpec) -> str:
        """One layer."""
        self.table.append(spec)
        return spec.name

    def norm(self, name: str, *, active: bool = True) -> str:
        """Batch normalisation of the layer before."""
        return self.put(Norm(f"{name}.norm", self._scale, active, self._epsilon))

    def conv(
        self,
        name: str,
        features: int,
        kernel: int | tuple[int, int],
        stride: int = 1,
        pad: Pad = "same",
        *,
        after: str = "",
        active: bool = True,
        fit: bool = False,
    ) -> str:
        """Convolution without bias, batch normalisation, activation. `after`: the layer it reads; empty: the one
        before."""
        self.put(
            Conv(
                name, features, kernel, stride, pad, bias=False, active=False, fit=fit, inputs=(after,) if after else ()
            )
        )
        return self.norm(name, active=active)

    def depthwise(self, name: str, kernel: int, stride: int = 1) -> str:
        """Depthwise convolution, batch normalisation, activation."""
        self.put(Depthwise(name, kernel, stride))
        return self.norm(name)

    def chain(self, name: str, after: str, *convolutions: tuple[int, int | tuple[int, int]]) -> str:
        """Convolutions of (features, kernel) one behind the other."""
        for number, (features, kernel) in enumerate(convolutions, 1):
            after = self.conv(f"{name}.conv{number}", features, kernel, after=after)
        return after

    def concat(self, name: str, *branches: str) -> str:
        """Branches side by side."""
        return self.put(Concat(name, inputs=branches))
