"""What a GPU is measured with: the device, its driver and libraries, and the node that it is in."""

from __future__ import annotations

import os
import platform
import subprocess

from scaleproof.record.host import cores, cpu_model

GIB = 2**30
ASKED = ("driver_version", "clocks.max.sm", "clocks.current.sm", "power.limit", "persistence_mode", "mig.mode.current")
"""What nvidia-smi is asked for; clocks in MHz, power in W."""
VARIABLES = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
)
"""Environment variables that change how fast a GPU computes."""


def why_no_cuda(device: str) -> str:
    """Why torch cannot compute on this CUDA device, and how to change that; empty if it can."""
    import torch

    if not torch.cuda.is_available():
        built = f"is built for CUDA {torch.version.cuda}" if torch.version.cuda else "is built without CUDA"
        return (
            f"not runnable here: torch {torch.__version__} {built} and finds no GPU; on a node with one, install a "
            "CUDA build of torch (pytorch.org, Get Started) and type the command there"
        )
    number = torch.device(device).index or 0
    if number >= (count := torch.cuda.device_count()):
        return f"not runnable here: --device {device}: this node has {count} GPU{'s' if count > 1 else ''}, from cuda:0"
    return ""


def device_environment(device: str) -> dict[str, str]:
    """Names and values as text, without what is not known."""
    import torch

    properties = torch.cuda.get_device_properties(device)
    version = torch.backends.cudnn.version()
    known = {
        "gpu": properties.name,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": str(properties.multi_processor_count),
        "memory_gib": f"{properties.total_memory / GIB:.1f}",
        "torch": torch.__version__,
        "cuda": torch.version.cuda or "",
        "cudnn": "" if version is None else str(version),
        "processor": cpu_model(),
        "cores": str(cores()),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }
    known |= _by_nvidia_smi(torch.device(device).index or 0)
    known |= {name: os.environ.get(name, "") for name in VARIABLES}
    return {name: value for name, value in known.items() if value}


def _by_nvidia_smi(number: int) -> dict[str, str]:
    """Driver, clocks and limits; nothing without nvidia-smi."""
    command = ["nvidia-smi", f"--id={number}", f"--query-gpu={','.join(ASKED)}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_nvidia_smi(answer)


def parse_nvidia_smi(answer: str) -> dict[str, str]:
    """A line of nvidia-smi's CSV, by name; what a GPU does not support is left out."""
    values = [value.strip() for value in answer.strip().split(",")]
    named = zip((name.replace(".", "_") for name in ASKED), values, strict=False)
    return {name: value for name, value in named if value and not value.startswith("[")}
