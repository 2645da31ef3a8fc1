"""NASNet-A, mobile (Zoph et al. 2017: 4 cells a stage, 1056 features at the end), without auxiliary head, with the
counts of keras.applications."""

from __future__ import annotations

from scaleproof.workloads.blocks import Blocks
from scaleproof.workloads.layers import (
    Active,
    Add,
    Concat,
    Conv,
    Depthwise,
    LayerSpec,
    Linear,
    Mean,
    Pick,
    Pool,
    reduced,
)
from scaleproof.workloads.networks import INPUT
from scaleproof.workloads.workload import ReferenceCounts, Workload

STEM, CELLS, FEATURES = 32, 4, 44
"""Features of the first convolution, normal cells a stage, features of a cell in the first stage."""


class _Cells(Blocks):
    """Builds cells that read the two previous cells. `width` has already been applied to the feature counts."""

    def separable(self, name: str, before: str, features: int, kernel: int, stride: int = 1) -> str:
        """Activation, depthwise convolution, pointwise convolution and normalisation, all twice."""
        for half, step in ((1, stride), (2, 1)):
            self.append(Active(f"{name}.relu{half}", inputs=(before,)))
            self.append(Depthwise(f"{name}.depthwise{half}", kernel, step))
            before = self.conv(f"{name}.pointwise{half}", features, 1, active=False)
        return before

    def squeezed(self, name: str, before: str, features: int) -> str:
        """A 1x1 convolution to the features of a cell."""
        self.append(Active(f"{name}.relu", inputs=(before,)))
        return self.conv(name, features, 1, active=False)

    def halved(self, name: str, before: str, features: int) -> str:
        """Halves the side by two 1x1 convolutions, one on every second pixel, one on the pixels next to them."""
        source, halves = self.append(Active(f"{name}.relu", inputs=(before,))), []
        for half in range(2):
            self.append(Pick(f"{name}.pick{half}", bool(half), inputs=(source,)))
            halves.append(self.append(Conv(f"{name}.conv{half}", features // 2, 1, bias=False, active=False)))
        self.append(Concat(f"{name}.join", inputs=tuple(halves)))
        return self.norm(name, active=False)

    def pool(self, name: str, before: str, stride: int = 1, *, average: bool = True) -> str:
        """A padded 3x3 pooling."""
        return self.append(Pool(name, 3, average, stride, "same", inputs=(before,)))

    def add(self, name: str, first: str, second: str) -> str:
        """Sum of two layers."""
        return self.append(Add(name, inputs=(first, second)))

    def normal(self, name: str, h: str, p: str, features: int) -> str:
        """Normal cell A on squeezed inputs: h from the previous cell, p from the cell before that."""
        return self.concat(
            name,
            p,
            self.add(
                f"{name}.x1",
                self.separable(f"{name}.x1a", h, features, 5),
                self.separable(f"{name}.x1b", p, features, 3),
            ),
            self.add(
                f"{name}.x2",
                self.separable(f"{name}.x2a", p, features, 5),
                self.separable(f"{name}.x2b", p, features, 3),
            ),
            self.add(f"{name}.x3", self.pool(f"{name}.x3a", h), p),
            self.add(f"{name}.x4", self.pool(f"{name}.x4a", p), self.pool(f"{name}.x4b", p)),
            self.add(f"{name}.x5", self.separable(f"{name}.x5a", h, features, 3), h),
        )

    def reduction(self, name: str, h: str, p: str, features: int) -> str:
        """Reduction cell A, which halves the side."""
        x1 = self.add(
            f"{name}.x1",
            self.separable(f"{name}.x1a", h, features, 5, 2),
            self.separable(f"{name}.x1b", p, features, 7, 2),
        )
        x2 = self.add(
            f"{name}.x2",
            self.pool(f"{name}.x2a", h, 2, average=False),
            self.separable(f"{name}.x2b", p, features, 7, 2),
        )
        x3 = self.add(f"{name}.x3", self.pool(f"{name}.x3a", h, 2), self.separable(f"{name}.x3b", p, features, 5, 2))
        x4 = self.add(f"{name}.x4", x2, self.pool(f"{name}.x4a", x1))
        x5 = self.add(
            f"{name}.x5", self.separable(f"{name}.x5a", x1, features, 3), self.pool(f"{name}.x5b", h, 2, average=False)
        )
        return self.concat(name, x2, x3, x4, x5)


def _nasnet_mobile(width: float) -> list[LayerSpec]:
    base = reduced(FEATURES, width)
    cells = _Cells()
    x = p = cells.conv("stem", reduced(STEM, width), 3, 2, pad=0, after=INPUT, active=False)
    plan = [("stem1", base // 4, True), ("stem2", base // 2, True)]
    for stage in range(3):
        plan += [(f"reduce{stage}", base * 2**stage, True)] if stage else []
        plan += [(f"cell{stage}_{number}", base * 2**stage, False) for number in range(CELLS)]
    halved_before = False  # whether x has half the side of p
    for name, features, halves in plan:
        squeeze = cells.halved if halved_before else cells.squeezed
        beside = p if name == "stem1" else squeeze(f"{name}.p", p, features)  # the first cell takes its input twice
        h = cells.squeezed(f"{name}.h", x, features)
        x, p = (cells.reduction if halves else cells.normal)(name, h, beside, features), x
        halved_before = halves
    cells.append(Active("relu"))
    cells.append(Mean("mean"))
    cells.append(Linear("fc", 1000, classifier=True))
    return cells.table


nasnet_mobile = Workload(
    name="nasnet_mobile",
    summary="NASNet-A mobile, 3x224x224, 5.3 M parameters",
    input_shape=(3, 224, 224),
    smallest_side=19,
    layers=_nasnet_mobile,
    reference=ReferenceCounts(
        weights=5_252_240,
        biases=37_738,
        forward_mac=563_638_816,
        source="keras.applications.NASNetMobile, trainable values",
        provenance="derived",
    ),
)

PLUGIN = nasnet_mobile
