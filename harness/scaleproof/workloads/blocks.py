"""Builds the layer table of a network with branches: every method adds layers and returns the name of the last one."""

from __future__ import annotations

from scaleproof.workloads.layers import Concat, Conv, Depthwise, LayerSpec, Norm, Pad


class Blocks:
    """A table under construction. `scale` and `epsilon` apply to all its batch normalisations."""

    def __init__(self, *, scale: bool = True, epsilon: float = 1e-3) -> None:
        self.table: list[LayerSpec] = []
        self._scale, self._epsilon = scale, epsilon

    def append(self, spec: LayerSpec) -> str:
        """Adds one layer."""
        self.table.append(spec)
        return spec.name

    def norm(self, name: str, *, active: bool = True) -> str:
        """Batch normalisation of the previous layer."""
        return self.append(Norm(f"{name}.norm", self._scale, active, self._epsilon))

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
        """Convolution without bias, batch normalisation, activation. `after`: its input layer; empty: the previous
        layer."""
        self.append(
            Conv(
                name, features, kernel, stride, pad, bias=False, active=False, fit=fit, inputs=(after,) if after else ()
            )
        )
        return self.norm(name, active=active)

    def depthwise(self, name: str, kernel: int, stride: int = 1) -> str:
        """Depthwise convolution, batch normalisation, activation."""
        self.append(Depthwise(name, kernel, stride))
        return self.norm(name)

    def chain(self, name: str, after: str, *convolutions: tuple[int, int | tuple[int, int]]) -> str:
        """Convolutions of (features, kernel) in sequence."""
        for number, (features, kernel) in enumerate(convolutions, 1):
            after = self.conv(f"{name}.conv{number}", features, kernel, after=after)
        return after

    def concat(self, name: str, *branches: str) -> str:
        """Concatenates the features of branches."""
        return self.append(Concat(name, inputs=branches))
