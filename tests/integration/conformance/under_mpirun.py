"""`python -m tests.integration.conformance.under_mpirun MODULE.FUNCTION CASE FOLDER`: one function of a module beside
this one in a process of mpirun or mpiexec."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from scaleproof.core.board import Board
from scaleproof.core.context import RankContext
from scaleproof.core.recorder import Recorder
from scaleproof.core.rendezvous import Rendezvous
from scaleproof.spec.plugins import loaded
from tests.short_form import case_from


def main(function: str, case_json: str, folder: Path) -> None:
    """The folder holds `board` and `rendezvous/`; results go there too."""
    rank, case = (
        int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ["PMI_RANK"]),
        case_from(json.loads(case_json)),
    )
    context = RankContext(
        case=case,
        rank=rank,
        world_size=case.ranks,
        launch_id="conformance",
        token="conformance",
        seed=0,
        folder=folder,
        address="127.0.0.1",
        rendezvous=Rendezvous(folder / "rendezvous"),
        recorder=Recorder(folder / f"rank-{rank}.events"),
        board=Board(folder / "board", case.ranks),
    )
    loaded(f"tests.integration.conformance.{function.replace('.', ':')}")(context, folder)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
