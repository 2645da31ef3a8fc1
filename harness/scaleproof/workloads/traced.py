"""Traces a user's torch module into a table of layers, for prediction. The trace runs on meta tensors: it computes
nothing and takes no memory."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from scaleproof.spec.errors import SpecError
from scaleproof.spec.registry import nearest
from scaleproof.workloads.layers import LayerSpec, Resolved, Shape, Variable
from scaleproof.workloads.networks import Layer, Network

if TYPE_CHECKING:
    from torch import Tensor, nn

BATCH = 2
"""Samples of the traced pass: batch normalisation refuses a single one."""
DTYPES = ("float32", "float64", "float16", "bfloat16", "int64", "int32", "bool")
WRITE = "write the shape of one sample, without the batch, as 3x224x224; tokens as int64:128"
_INPUT = re.compile(r"(?:([a-z0-9]+):)?([0-9]+(?:x[0-9]+)*)$")
_VALUES = ("meta tensor", "_local_scalar_dense", "item()", "data-dependent")
"""Parts of torch's messages about code that reads values, which meta tensors do not have."""


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a module, for one sample."""

    shape: Shape
    dtype: str = "float32"

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return shape if self.dtype == "float32" else f"{self.dtype}:{shape}"


@dataclass(frozen=True, slots=True)
class Traced(LayerSpec):
    """A layer with the sizes of the trace."""

    sizes: Resolved

    def resolve(self, shapes: Sequence[Shape], width: float) -> Resolved:
        """See LayerSpec; a traced layer has no width."""
        return self.sizes


@dataclass(slots=True)
class _Entry:
    """One call of a module: its FLOP, and the parameters that it is the first to use."""

    name: str
    input_shape: Shape
    output_shape: Shape
    flop: int = 0
    parameters: list[tuple[str, Shape]] = field(default_factory=list)

    def layer(self, before: str) -> Layer:
        variables = tuple(
            Variable(self._short(name), shape, "normal", prod(shape[1:])) for name, shape in self.parameters
        )
        mac = self.flop // (2 * BATCH)
        spec = Traced(self.name, sizes=Resolved(self.output_shape, variables, mac))
        return Layer(spec, (before,), self.input_shape, self.output_shape, variables, mac, mac)

    def _short(self, name: str) -> str:
        return name.removeprefix(self.name.partition("#")[0] + ".")


def parse_inputs(text: str) -> tuple[Input, ...]:
    """Parses shapes as `3x224x224`; several are separated by commas: `int64:128,int64:128`."""
    inputs = []
    for part in text.split(","):
        match = _INPUT.match(part.strip())
        if match is None:
            raise SpecError(f"input {part.strip()!r} is no shape; {WRITE}")
        dtype, shape = match[1] or "float32", tuple(map(int, match[2].split("x")))
        if dtype not in DTYPES:
            raise SpecError(f"input {part.strip()!r}: unknown type {dtype!r}; {nearest(dtype, list(DTYPES))}")
        if 0 in shape:
            raise SpecError(f"input {part.strip()!r} has a side of 0; {WRITE}")
        inputs.append(Input(shape, dtype))
    return tuple(inputs)


def trace(path: str, inputs: Sequence[Input] | None) -> tuple[Network, list[str]]:
    """The network of `package.module:name`: a torch module, its class, or a function without arguments that makes one.
    Also returns the names of trained parameters that the forward pass does not use (no gradient, no exchange).

    Layers are calls of modules in the order of the forward pass. A parameter belongs to the call that uses it first,
    because its gradient is complete when the backward pass reaches that call. Raises SpecError when the module cannot
    be made, or its forward pass does not accept these inputs."""
    module = _module(path)
    if inputs is None:
        raise SpecError(f"{path}: the shape of its input is missing; {_suggested(module)}")
    entries, unused = _run(path, module, inputs)
    layers: list[Layer] = []
    for entry in entries:
        if entry.flop or entry.parameters:
            layers.append(entry.layer(layers[-1].name if layers else "input"))
    if not any(layer.variables for layer in layers):
        raise SpecError(f"{path}: its forward pass uses no trained parameter; there is nothing to exchange")
    return Network(path, inputs[0].shape, tuple(layers)), unused


def _module(path: str) -> nn.Module:
    """Imports and makes the module, on the meta device if its constructor can."""
    import torch

    module_name, _, name = path.partition(":")
    target = _attribute(module_name, name)
    if isinstance(target, torch.nn.Module):
        return target.to("meta")
    if not callable(target):
        raise SpecError(
            f"{path} is a {type(target).__name__}; name a torch module, its class, or a function that makes one"
        )
    needed = [
        parameter.name
        for parameter in _parameters(target)
        if parameter.default is parameter.empty and parameter.kind in (0, 1, 3)
    ]
    if needed:
        raise SpecError(
            f"{path} needs arguments ({', '.join(needed)}); name a function without: def mine(): return {name}(...)"
        )
    made = _made(path, target)
    if not isinstance(made, torch.nn.Module):
        raise SpecError(f"{path} gives a {type(made).__name__}, not a torch module")
    return made.to("meta")


def _made(path: str, target: Callable[[], Any]) -> Any:
    import torch

    try:
        with torch.device("meta"):
            return target()
    except Exception:  # the constructor reads values of tensors: make it with memory
        try:
            return target()
        except Exception as error:
            raise SpecError(f"{path} cannot be made: {_one_line(error)}") from None


def _attribute(module_name: str, name: str) -> Any:
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise SpecError(
                f"no module {error.name!r} here ({folder}) or among the installed packages; a torch module is "
                "named as package.module:name"
            ) from None
        raise SpecError(f"module {module_name!r} cannot be imported: {_one_line(error)}") from None
    except Exception as error:
        raise SpecError(f"module {module_name!r} cannot be imported: {_one_line(error)}") from None
    if not hasattr(module, name):
        public = [each for each in vars(module) if not each.startswith("_") and callable(getattr(module, each))]
        raise SpecError(f"module {module_name!r} has no {name!r}; {nearest(name, public)}")
    return getattr(module, name)


def _parameters(target: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return []


def _one_line(error: Exception) -> str:
    """An exception's type and message on one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}{'...' if len(text) > 200 else ''}"


def _suggested(module: nn.Module) -> str:
    """Advice on --input for the module's first layer."""
    from torch import nn

    for child in module.modules():
        if isinstance(child, nn.modules.conv._ConvNd):
            sides = len(child.kernel_size)
            return (
                f"give --input {child.in_channels}{'x224' * sides}: its first convolution reads "
                f"{child.in_channels} channels, then sides of an image or volume"
            )
        if isinstance(child, nn.Embedding):
            return "give --input int64:128: its first layer reads tokens, here 128 of them"
        if isinstance(child, nn.Linear):
            return f"give --input {child.in_features}: its first layer reads {child.in_features} values"
    return f"give --input: {WRITE}"


def _run(path: str, module: nn.Module, inputs: Sequence[Input]) -> tuple[list[_Entry], list[str]]:
    """Runs one forward pass on meta tensors. Returns the calls of modules that multiply or use parameters, in order,
    and the names of unused parameters."""
    import torch

    values = [torch.zeros((BATCH, *each.shape), dtype=getattr(torch, each.dtype), device="meta") for each in inputs]
    watch = _watch(module)
    module.train()
    try:
        with watch:
            module(*values)
    except Exception as error:
        message = _one_line(error)
        if any(mark in message for mark in _VALUES):
            raise SpecError(
                f"{path}: its forward pass reads values, which a traced pass does not have: {message}"
            ) from None
        options = ", ".join(map(str, inputs))
        raise SpecError(
            f"{path}: its forward pass does not accept --input {options}: {message}; {_suggested(module)}"
        ) from None
    finally:
        for hook in watch.hooks:
            hook.remove()
    return watch.entries, list(watch.waiting.values())


def _watch(module: nn.Module) -> Any:
    """A dispatch mode that records FLOP and first uses of parameters for each call of a module."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import flop_registry

    class Watch(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.entries: list[_Entry] = []
            self.calls: list[tuple[str, int, Shape]] = [("body", 0, ())]
            self.last = -1
            self.count = 0
            self.waiting = {id(value): name for name, value in module.named_parameters() if value.requires_grad}
            self.hooks = [
                hook for name, child in module.named_modules() for hook in self._hooked(name or "body", child)
            ]

        def _hooked(self, name: str, child: nn.Module) -> tuple[Any, Any]:
            def enter(_: nn.Module, arguments: tuple[Any, ...]) -> None:
                self.count += 1
                self.calls.append((name, self.count, _shape(tree_leaves(arguments))))

            def leave(*_: Any) -> None:
                self.calls.pop()

            return child.register_forward_pre_hook(enter), child.register_forward_hook(leave)

        def __torch_dispatch__(
            self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            keywords = kwargs or {}
            result = function(*args, **keywords)
            leaves = tree_leaves((args, keywords))
            names = [(self.waiting.pop(id(leaf)), tuple(leaf.shape)) for leaf in leaves if id(leaf) in self.waiting]
            formula = flop_registry.get(function._overloadpacket)
            flop = formula(*args, **keywords, out_val=result) if formula else 0
            if names or flop or self.calls[-1][1] == self.last:
                entry = self._entry()
                entry.parameters += names
                entry.flop += int(flop)
                entry.output_shape = _shape(tree_leaves(result)) or entry.output_shape
            return result

        def _entry(self) -> _Entry:
            """The entry of the current call. A module that continues after calls of its children gets a new entry."""
            name, call, shape = self.calls[-1]
            if call != self.last:
                again = sum(entry.name.partition("#")[0] == name for entry in self.entries)
                self.entries.append(_Entry(f"{name}#{again + 1}" if again else name, shape, shape))
                self.last = call
            return self.entries[-1]

    return Watch()


def _shape(leaves: Sequence[Any]) -> Shape:
    """Shape of one sample of the first tensor among the leaves."""
    import torch

    tensors: list[Tensor] = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.dim()]
    return tuple(tensors[0].shape[1:]) if tensors else ()
