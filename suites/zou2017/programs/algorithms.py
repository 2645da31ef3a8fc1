"""Five algorithms that convolve a padded batch of images (points, maps, high, wide) with kernels (out, maps, high,
wide), in torch, without bias."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TILE, TAPS = 2, 3
"""Winograd F(2x2, 3x3): side of a tile of results, side of the kernel."""
PATCH = TILE + TAPS - 1
INPUTS = ((1.0, 0.0, -1.0, 0.0), (0.0, 1.0, 1.0, 0.0), (0.0, -1.0, 1.0, 0.0), (0.0, 1.0, 0.0, -1.0))
KERNELS = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
RESULTS = ((1.0, 1.0, 1.0, 0.0), (0.0, 1.0, -1.0, -1.0))
"""Transforms of Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, section 4.1."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Properties of a layer that decide which algorithms can compute it. `pads`: before and after, of height and
    width."""

    maps: int
    out: int
    kernel: tuple[int, int]
    stride: int
    pads: tuple[tuple[int, int], tuple[int, int]]

    def padded(self, torch: Any, images: Any) -> Any:
        """The images padded with zeros, which every algorithm expects."""
        (top, bottom), (left, right) = self.pads
        return torch.nn.functional.pad(images, (left, right, top, bottom))


@dataclass(frozen=True, slots=True)
class Algorithm:
    """The function that convolves, and whether it can compute a layer."""

    compute: Callable[[Any, Any, Any, int], Any]
    fits: Callable[[Shape], bool]


def direct(torch: Any, images: Any, weights: Any, stride: int) -> Any:
    """The library's convolution."""
    return torch.nn.functional.conv2d(images, weights, stride=stride)


def gemm(torch: Any, images: Any, weights: Any, stride: int) -> Any:
    """im2col: the pixels under every position of the kernel become a column."""
    out, _, high, wide = weights.shape
    columns = torch.nn.functional.unfold(images, (high, wide), stride=stride)
    return (weights.reshape(out, -1) @ columns).reshape(images.shape[0], out, *_sides(images, high, wide, stride))


def fft(torch: Any, images: Any, weights: Any, stride: int) -> Any:
    """Correlation is a product of one spectrum with the conjugate of the other. With a stride only every n-th result is
    kept."""
    _, _, high, wide = weights.shape
    sides = images.shape[-2:]
    spectra = torch.einsum("nchw,ochw->nohw", torch.fft.rfft2(images), torch.fft.rfft2(weights, s=sides).conj())
    results = torch.fft.irfft2(spectra, s=sides)[:, :, : sides[0] - high + 1 : stride, : sides[1] - wide + 1 : stride]
    return results.contiguous()


def winograd(torch: Any, images: Any, weights: Any, stride: int) -> Any:
    """Tiles of 2x2 results from patches of 4x4. One batched product covers all maps."""
    points, maps = images.shape[:2]
    out, sides = weights.shape[0], _sides(images, TAPS, TAPS, 1)
    tiles = [-(-side // TILE) for side in sides]
    missing = [(count - 1) * TILE + PATCH - side for count, side in zip(tiles, images.shape[-2:], strict=True)]
    extended = torch.nn.functional.pad(images, (0, missing[1], 0, missing[0]))
    patches = extended.unfold(2, PATCH, TILE).unfold(3, PATCH, TILE)
    of_inputs, of_kernels, of_results = (
        torch.tensor(rows, dtype=images.dtype, device=images.device) for rows in (INPUTS, KERNELS, RESULTS)
    )
    transformed = torch.einsum("ai,nchwij,bj->abcnhw", of_inputs, patches, of_inputs).reshape(PATCH * PATCH, maps, -1)
    kernels = torch.einsum("ai,ocij,bj->aboc", of_kernels, weights, of_kernels).reshape(PATCH * PATCH, out, maps)
    products = torch.bmm(kernels, transformed).reshape(PATCH, PATCH, out, points, *tiles)
    results = torch.einsum("ia,abonhw,jb->nohiwj", of_results, products, of_results)
    return results.reshape(points, out, tiles[0] * TILE, tiles[1] * TILE)[:, :, : sides[0], : sides[1]].contiguous()


def kn2row(torch: Any, images: Any, weights: Any, stride: int) -> Any:
    """A product for every element of the kernel, added directly into the result: the image is shifted, not copied
    (Anderson, Vasudevan, Keane, Gregg, Low-memory GEMM-based convolution algorithms for deep neural networks, 2017).
    Results are computed across the padded width, so a view is returned."""
    points, maps, padded_high, padded_wide = images.shape
    out, _, high, wide = weights.shape
    sides = _sides(images, high, wide, 1)
    pixels = images.reshape(points, maps, padded_high * padded_wide)
    results = torch.empty(points, out, sides[0] * padded_wide, dtype=images.dtype, device=images.device)
    length = (sides[0] - 1) * padded_wide + sides[1]
    for number, (row, column) in enumerate((row, column) for row in range(high) for column in range(wide)):
        shifted = pixels[:, :, row * padded_wide + column :][:, :, :length]
        for point in range(points):
            target = results[point, :, :length]
            torch.addmm(target, weights[:, :, row, column], shifted[point], beta=float(number > 0), out=target)
    return results.reshape(points, out, sides[0], padded_wide)[:, :, :, : sides[1]]


def _sides(images: Any, high: int, wide: int, stride: int) -> tuple[int, int]:
    return (images.shape[-2] - high) // stride + 1, (images.shape[-1] - wide) // stride + 1


ALGORITHMS = {
    "direct": Algorithm(direct, lambda shape: True),
    "gemm": Algorithm(gemm, lambda shape: True),
    "fft": Algorithm(fft, lambda shape: True),
    "kn2row": Algorithm(kn2row, lambda shape: shape.stride == 1),
    "winograd": Algorithm(winograd, lambda shape: shape.kernel == (TAPS, TAPS) and shape.stride == 1),
}
