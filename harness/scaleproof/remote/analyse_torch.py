"""The data-flow graph of a torch module, by torch.export: every tensor with its shape, free dimensions by name.

If torch.export had to fix a free dimension (a loop over time steps), the module is exported with two sizes of it; sizes
that differ depend on that dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import fx, nn

from scaleproof.remote.graph_analyser import Dim, Tensor

Free: TypeAlias = Mapping[int, str]
"""Names of one input's free dimensions, by index: {0: "batch"}."""
Shapes: TypeAlias = dict[str, tuple[Dim, ...]]
DATA = "the data"
GRADIENT = "gradient of "


def tensors_of(
    module: nn.Module, inputs: Sequence[torch.Tensor], free: Sequence[Free], server_of: Callable[[str], int]
) -> list[Tensor]:
    """All tensors of the forward pass in its order, then the gradient of each parameter.

    `inputs`: sample tensors (device meta is enough). `server_of`: server by name of a parameter, an input or an
    operation; the name of an operation is its module, a dot and the operation ("features.0.conv2d"). A gradient is
    computed on the server that uses its parameter, and sent to the server that holds it.
    """
    graph, symbols, shapes = _exported(module, inputs, free)
    for number, dims in enumerate(free):
        for dim, name in dims.items():
            if name not in symbols.values():
                _mark(shapes, _exported(module, _longer(inputs, number, dim), free)[2], name)
    servers = {node.name: server_of(_label(node)) for node in graph.nodes if node.op != "output"}
    forward = [_tensor(node, shapes[node.name], servers) for node in graph.nodes if node.name in shapes]
    return forward + [_gradient(tensor) for tensor in forward if tensor.name in dict(module.named_parameters())]


def _exported(
    module: nn.Module, inputs: Sequence[torch.Tensor], free: Sequence[Free]
) -> tuple[fx.Graph, dict[str, str], Shapes]:
    """The graph, with the original names of parameters; the names of its symbols; the shapes of its tensors."""
    dynamic = tuple(dict.fromkeys(dims, torch.export.Dim.AUTO) for dims in free)
    program = torch.export.export(module, tuple(inputs), dynamic_shapes=dynamic, strict=False)
    signature = program.graph_signature
    own = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    users = iter(free)
    symbols: dict[str, str] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder":
            node.meta["own_name"] = own.get(node.name, node.name)
            if node.name in signature.user_inputs:
                symbols |= {
                    str(symbol): name
                    for dim, name in next(users).items()
                    for symbol in _symbols(node.meta["val"].shape[dim])
                }
    shapes = {node.name: _shape(node.meta.get("val"), symbols) for node in program.graph.nodes}
    return program.graph, symbols, {name: shape for name, shape in shapes.items() if shape is not None}


def _longer(inputs: Sequence[torch.Tensor], number: int, dim: int) -> list[torch.Tensor]:
    """The inputs, with one dimension of one input longer by one."""
    sizes = [size + (index == dim) for index, size in enumerate(inputs[number].shape)]
    return [*inputs[:number], inputs[number].new_zeros(sizes), *inputs[number + 1 :]]


def _mark(shapes: Shapes, other: Shapes, name: str) -> None:
    """Dimensions whose size differs in the other export depend on `name`."""
    for tensor, shape in shapes.items():
        if tensor in other and len(other[tensor]) == len(shape):
            pairs = zip(shape, other[tensor], strict=True)
            shapes[tensor] = tuple(name if isinstance(size, int) and size != longer else size for size, longer in pairs)


def _shape(value: Any, symbols: Mapping[str, str]) -> tuple[Dim, ...] | None:
    """Shape of a tensor; None for other values. An operation with several results has a `getitem` node for each."""
    if not isinstance(value, torch.Tensor):
        return None
    return tuple(_dim(size, symbols) for size in value.shape)


def _dim(size: Any, symbols: Mapping[str, str]) -> Dim:
    used = sorted({symbols.get(str(symbol), DATA) for symbol in _symbols(size)})
    return " and ".join(used) or int(size)


def _symbols(size: Any) -> set[Any]:
    """The symbols that a size depends on; none for a fixed size."""
    return set() if isinstance(size, int) else set(size.node.expr.free_symbols)


def _label(node: fx.Node) -> str:
    """Name of a node, the argument of `server_of`."""
    if node.op == "placeholder":
        return str(node.meta["own_name"])
    stack = list(node.meta.get("nn_module_stack", {}).values())
    kind = getattr(node.target, "_schema", None)
    operation = kind.name.partition("::")[2] if kind else str(getattr(node.target, "__name__", node.target))
    return f"{stack[-1][0]}.{operation}" if stack and stack[-1][0] else operation


def _tensor(node: fx.Node, shape: tuple[Dim, ...], servers: Mapping[str, int]) -> Tensor:
    name = str(node.meta.get("own_name", node.name))
    targets = tuple(sorted({servers[user.name] for user in node.users if user.name in servers}))
    return Tensor(name, shape, str(node.meta["val"].dtype).removeprefix("torch."), servers[node.name], targets)


def _gradient(parameter: Tensor) -> Tensor:
    source = parameter.targets[0] if parameter.targets else parameter.source
    return Tensor(f"{GRADIENT}{parameter.name}", parameter.shape, parameter.dtype, source, (parameter.source,))
