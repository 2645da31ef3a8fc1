"""Gradients of a parameter server's workers: by zero copy they are born in registered memory from the second step on,
and no bit changes."""

from __future__ import annotations

from pathlib import Path

import torch  # noqa: F401  imported before the ranks are forked, as their parent does

from tests.integration._training import Outcome, case_of, launch

STEPS = 4
GRADIENTS = 8
"""Tensors of dnn_digits."""


def trained(folder: Path, mechanism: str) -> Outcome:
    case = case_of(
        ranks=2, strategy="parameter_server", transport="shm", collective="ring", mechanism=mechanism, steps=STEPS
    )
    return launch(folder / mechanism, case)


def test_gradients_are_copied_in_the_first_step_only_and_no_bit_changes(tmp_path: Path) -> None:
    copied, born = trained(tmp_path, "copy"), trained(tmp_path, "zero_copy")
    assert born.values("born_copied").tolist() == [GRADIENTS] + [0] * (STEPS - 1)
    assert born.values("born_placed").tolist() == [0] + [GRADIENTS] * (STEPS - 1)
    assert copied.count("born_copied") == 0
    assert born.parameters.tobytes() == copied.parameters.tobytes()
