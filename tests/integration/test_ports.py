"""No port is a constant: launches of every transport that listens run at the same time on one address."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from scaleproof.record.store import Store
from scaleproof.spec import registry

ROOT = Path(__file__).parents[2]
LISTENING = {
    "tcp": "ring",
    "grpc": "ring",
    "gloo": "native",
    "horovod": "native",
    "tensorflow-grpc": "native",
    "tensorflow-mirrored": "native",
}
RUN = """
import sys
from pathlib import Path
from scaleproof.launch.supervisor import run_plan
from tests.integration.launches import launches, small_case
pairs = [pair.split(":") for pair in sys.argv[2:]]
cases = [small_case(name, transport=name, collective=collective, iterations=200) for name, collective in pairs]
run_plan(launches(cases), Path(sys.argv[1]), size="ci", deadline_s=60)
"""


def test_two_launches_of_a_transport_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    transports = [
        f"{name}:{collective}"
        for name, collective in LISTENING.items()
        if registry.availability("transport", name).available
    ]
    runs = [
        subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path / name), *transports], cwd=ROOT)
        for name in ("a", "b")
    ]
    assert [run.wait(120) for run in runs] == [0, 0]
    records = [record for name in ("a", "b") for record in Store(tmp_path / name).records()]
    assert [(record.case.arm, record.failure) for record in records if record.status != "ok"] == []
    assert len(records) == 2 * len(transports)
