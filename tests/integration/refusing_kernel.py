"""A kernel that refuses some system calls, as a container's seccomp filter does."""

from __future__ import annotations

import ctypes
import errno

COPIES = (310, 311)
"""process_vm_readv and process_vm_writev on x86-64."""
_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


def refuse(*numbers: int) -> None:
    """From now on this process gets EPERM from these system calls."""
    instructions = [_Instruction(_LOAD, 0, 0, 0)]
    for number in numbers:
        instructions += [_Instruction(_JUMP_IF_EQUAL, 0, 1, number), _Instruction(_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    instructions.append(_Instruction(_RETURN, 0, 0, _ALLOW))
    rules = (_Instruction * len(instructions))(*instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in (
        (_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_SET_SECCOMP, _FILTER, ctypes.byref(_Program(len(instructions), rules)), 0, 0),
    ):
        assert libc.prctl(*arguments) == 0, ctypes.get_errno()
