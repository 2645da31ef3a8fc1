"""Tables of a run page: bytes on the wire beside bytes requested, preflight checks, and clocks."""

from __future__ import annotations

from dataclasses import dataclass

from scaleproof.core.record_schema import PreflightCheck, Record
from scaleproof.record.wire import traffic_by_namespace
from scaleproof.report.numbers import nbytes, significant

OUTCOME = {True: "ok", False: "failed", None: "not readable"}


@dataclass(frozen=True, slots=True)
class WireRow:
    """One interface of one network namespace over the timed region."""

    namespace: str
    ranks: str
    interface: str
    sent: str
    packets: str
    requested: str
    share: str
    carrier: bool


@dataclass(frozen=True, slots=True)
class PreflightRow:
    """One check made before the launch."""

    code: str
    outcome: str
    message: str
    advice: str


def wire(record: Record) -> list[WireRow]:
    """A row per namespace and interface. `share`: bytes that the interface sent per byte that the ranks requested their
    transport to move."""
    rows = []
    for traffic in traffic_by_namespace(record.network):
        parts = [part for part in record.network if part.rank in traffic.ranks]
        for name, count in sorted(traffic.sent_bytes.items()):
            packets = max(part.after[name]["tx_packets"] for part in parts) - min(
                part.before.get(name, {"tx_packets": 0})["tx_packets"] for part in parts
            )
            share = f"{100 * count / traffic.asked_bytes:.1f} %" if traffic.asked_bytes else "–"
            ranks = ", ".join(map(str, traffic.ranks))
            rows.append(
                WireRow(
                    traffic.namespace,
                    ranks,
                    name,
                    nbytes(count),
                    significant(packets),
                    nbytes(traffic.asked_bytes),
                    share,
                    name == traffic.interface,
                )
            )
    return rows


def preflight(record: Record) -> list[PreflightRow]:
    """Failed checks first, then those that could not be made."""
    order = {False: 0, None: 1, True: 2}
    return [_preflight_row(check) for check in sorted(record.preflight, key=lambda check: order[check.passed])]


def _preflight_row(check: PreflightCheck) -> PreflightRow:
    return PreflightRow(check.code, OUTCOME[check.passed], check.message, check.advice)


def clocks(record: Record) -> list[tuple[str, str, str]]:
    """Rank, offset and uncertainty in µs."""
    return [
        (str(clock.rank), significant(clock.offset_ns / 1e3), significant(clock.uncertainty_ns / 1e3))
        for clock in record.clocks
    ]
