"""The solver of narasimhan2014: it finds what LIBSVM finds, on any number of ranks; data that are wrong are refused in
one line."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from scaleproof.programs.own import load_entry
from scaleproof.spec.errors import SpecError
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "narasimhan2014" / "programs"
MODULES = ("alone", "blocks", "data_sets", "heuristics", "kernels", "messages", "solver", "task", "training")
EPS = 1e-3


def load() -> Any:
    """The suite's modules, as its program imports them."""
    load_entry(PROGRAMS, "training")
    return SimpleNamespace(**{name: importlib.import_module(f"suite_programs.{name}") for name in MODULES})


@pytest.fixture(scope="module")
def of() -> Iterator[Any]:
    before = {name: module for name, module in sys.modules.items() if name.startswith("suite_programs")}
    for name in before:
        del sys.modules[name]
    yield load()
    for name in [name for name in sys.modules if name.startswith("suite_programs")]:
        del sys.modules[name]
    sys.modules.update(before)


@contextmanager
def untimed(*_: object) -> Iterator[None]:
    yield


class Group:
    """Collectives of threads: what a transport would do, in one process."""

    def __init__(self, shared: Any, rank: int, world_size: int) -> None:
        self.shared, self.rank, self.world_size = shared, rank, world_size

    def allocate(self, nbytes: int) -> np.ndarray:
        return np.zeros(nbytes, np.uint8)

    def _exchanged(self, buffer: np.ndarray) -> list[np.ndarray]:
        self.shared.slots[self.rank] = buffer.copy()
        self.shared.barrier.wait()
        found = list(self.shared.slots)
        self.shared.barrier.wait()
        return found

    def all_reduce(self, buffer: np.ndarray, operation: str = "sum") -> Any:
        buffer[:] = (np.sum if operation == "sum" else np.max)(self._exchanged(buffer), axis=0)
        return SimpleNamespace(wait=lambda: None)

    def broadcast(self, buffer: np.ndarray, root: int = 0) -> Any:
        buffer[:] = self._exchanged(buffer)[root]
        return SimpleNamespace(wait=lambda: None)

    def send(self, buffer: np.ndarray, peer: int) -> Any:
        self.shared.queues[self.rank, peer].put(buffer.copy())
        return SimpleNamespace(wait=lambda: None)

    def recv(self, buffer: np.ndarray, peer: int) -> Any:
        def wait() -> None:
            buffer[:] = self.shared.queues[peer, self.rank].get(timeout=20)

        return SimpleNamespace(wait=wait)


def on_ranks(ranks: int, work: Callable[[Group], Any]) -> list[Any]:
    """What each rank returns."""
    pairs = [(source, peer) for source in range(ranks) for peer in range(ranks)]
    queues: dict[tuple[int, int], Queue[np.ndarray]] = {pair: Queue() for pair in pairs}
    shared = SimpleNamespace(slots=[None] * ranks, barrier=threading.Barrier(ranks, timeout=20), queues=queues)
    results: list[Any] = [None] * ranks

    def of_rank(rank: int) -> None:
        results[rank] = work(Group(shared, rank, ranks))

    threads = [threading.Thread(target=of_rank, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def solved(of: Any, problem: Any, name: str, parts: int = 16, group: Group | None = None, eps: float = EPS) -> Any:
    """A machine that has been trained, on the rows of one rank."""
    ranks, rank = (group.world_size, group.rank) if group else (1, 0)
    rows = of.blocks.block(problem.train, ranks, rank)
    messages = of.messages.Messages(group, len(rows), problem.train.longest, problem.train.features)
    labels = problem.labels[messages.first : messages.first + len(rows)]
    machine = of.solver.Machine(rows, labels, problem.width, problem.limit, messages)
    machine.solve(of.heuristics.heuristic(name, messages.count), eps, math.inf, parts, untimed)
    return machine


def objective(problem: Any, alpha: np.ndarray) -> float:
    """By scikit-learn's kernel."""
    weights = alpha * problem.labels
    return float(0.5 * weights @ rbf_kernel(problem.train.dense(), gamma=problem.width) @ weights - alpha.sum())


def gap(problem: Any, alpha: np.ndarray) -> float:
    """beta_low - beta_up over all samples, from its definition."""
    gamma = rbf_kernel(problem.train.dense(), gamma=problem.width) @ (alpha * problem.labels) - problem.labels
    up = (problem.labels > 0) & (alpha < problem.limit) | (problem.labels < 0) & (alpha > 0)
    low = (problem.labels > 0) & (alpha > 0) | (problem.labels < 0) & (alpha < problem.limit)
    return float(gamma[low].max() - gamma[up].min())


@pytest.mark.parametrize("data", ["gaussians", "noisy", "easy", "moons", "digits_3_8", "breast_cancer"])
def test_the_solution_is_that_of_libsvm(of: Any, data: str) -> None:
    problem = of.data_sets.problem(data, 300, 5)
    machine = solved(of, problem, "original")
    svc = SVC(C=problem.limit, gamma=problem.width, tol=2 * EPS).fit(problem.train.dense(), problem.labels)
    alpha = np.zeros(len(problem.labels))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    assert objective(problem, machine.alpha) == pytest.approx(objective(problem, alpha), rel=1e-4)
    assert abs(machine.alpha @ problem.labels) < 1e-9 and machine.alpha.min() >= 0
    assert machine.alpha.max() <= problem.limit and gap(problem, machine.alpha) <= 2 * EPS * 1.001
    assert machine.curve.elements == 2 * len(problem.labels) * machine.curve.iterations


@pytest.mark.parametrize("name", ["2_single", "5pc_multi", "50_single", "10_multi", "50pc_single"])
@pytest.mark.parametrize("parts", [1, 400])
def test_shrinking_finds_the_same_and_brings_all_samples_back(of: Any, name: str, parts: int) -> None:
    problem = of.data_sets.problem("moons", 400, 2)
    plain, machine = solved(of, problem, "original"), solved(of, problem, name, parts)
    assert objective(problem, machine.alpha) == pytest.approx(objective(problem, plain.alpha), rel=1e-5)
    assert gap(problem, machine.alpha) <= 2 * EPS * 1.001 and machine.curve.converged
    assert machine.curve.reconstructions and machine.curve.active[-1][1] == 400
    assert len(machine.curve.reconstructions) == 1 or name.endswith("multi")


def test_samples_that_never_come_back_cost_the_solution(of: Any) -> None:
    for seed in range(3):
        problem = of.data_sets.problem("moons", 1000, seed)
        plain, machine = solved(of, problem, "original"), solved(of, problem, "2_never", 1000)
        assert objective(problem, machine.alpha) > objective(problem, plain.alpha) * (1 - 1e-4)
        assert gap(problem, machine.alpha) > 20 * EPS and not machine.curve.reconstructions


def test_a_look_that_is_never_reached_changes_nothing(of: Any) -> None:
    problem = of.data_sets.problem("gaussians", 300, 1)
    plain, machine = solved(of, problem, "original"), solved(of, problem, "beyond_multi")
    assert (machine.alpha == plain.alpha).all() and machine.curve.elements == plain.curve.elements


@pytest.mark.parametrize(("apart", "first"), [(2.0**-40, 0), (2.0**-20, 1)])
def test_the_first_of_values_that_agree_to_32_bits_counts_on_one_rank_too(of: Any, apart: float, first: int) -> None:
    """What the last bits of exp are depends on the processor; on several ranks they are not looked at."""
    free, labels, rows = np.full(2, 0.5), np.ones(2), np.arange(2)
    value = 1.5 + 2.0**-33  # half way between two that have 32 bits
    rising, falling = np.array([value, value + apart]), np.array([value, value - apart])
    assert of.kernels.extremes(rising, labels, free, 1.0, rows, 2)[3] == first
    assert of.kernels.extremes(falling, labels, free, 1.0, rows, 2)[1] == first


@pytest.mark.parametrize("ranks", [2, 3, 5])
@pytest.mark.parametrize("name", ["original", "2_single", "5_multi"])
def test_ranks_find_what_one_finds_bit_by_bit(of: Any, ranks: int, name: str) -> None:
    problem = of.data_sets.problem("moons", 101, 4)
    alone = solved(of, problem, name)

    def work(group: Group) -> tuple[np.ndarray, int, Any]:
        machine = solved(of, problem, name, group=group)
        gathered = machine.messages.gathered(machine.alpha, machine.messages.count)
        return gathered, machine.curve.elements, machine.curve

    results = on_ranks(ranks, work)
    for alpha, _, curve in results:
        assert (alpha == alone.alpha).all()
        assert (curve.iterations, curve.active, curve.reconstructions) == (
            alone.curve.iterations,
            alone.curve.active,
            alone.curve.reconstructions,
        )
    assert sum(elements for _, elements, _ in results) == alone.curve.elements


def test_a_reconstruction_is_gamma_from_its_definition(of: Any) -> None:
    problem = of.data_sets.problem("gaussians", 200, 3)
    machine = solved(of, problem, "2_never", 200, eps=0.05)
    assert machine.count < 200
    before = machine.curve.elements
    dropped, used = 200 - machine.count, int(np.count_nonzero(machine.alpha))
    machine._reconstruct()
    expected = rbf_kernel(problem.train.dense(), gamma=problem.width) @ (machine.alpha * problem.labels)
    assert machine.gamma == pytest.approx(expected - problem.labels, abs=1e-9)
    assert machine.curve.elements - before == dropped * used


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12))
def test_extremes_travel_as_numbers_in_their_order(values: list[float]) -> None:
    messages = load().messages.Messages(None, len(values), 1, 1)
    keys = [messages._key(value, row) for row, value in enumerate(values)]
    assert all(-(1 << 63) < key < 1 << 63 for key in keys)
    best = max(range(len(values)), key=lambda row: keys[row])
    found = messages._extreme(keys[best])
    assert found.place == best and found.value == pytest.approx(max(values), rel=1e-9, abs=1e-300)


def test_of_equal_extremes_the_lowest_place_wins_and_none_is_none(of: Any) -> None:
    messages = of.messages.Messages(None, 5, 1, 1)
    assert messages._key(0.25, 1) > messages._key(0.25, 4) > messages._key(-0.25, 0)
    up, low = messages.extremes((math.inf, -1, 0.5, 3))
    assert (up.place, low.place, low.value) == (-1, 3, 0.5)


@given(st.permutations(range(40)))
def test_sums_do_not_depend_on_the_order_of_samples(order: list[int]) -> None:
    modules, random = load(), np.random.default_rng(1)
    rows = modules.blocks.compressed(random.standard_normal((40, 3)))
    weights = 10.0 ** random.uniform(-6, 6, 40) * np.where(np.arange(40) % 2, 1, -1)

    def total(chosen: np.ndarray) -> np.ndarray:
        machine = modules.solver.Machine(rows, weights, 0.5, 1.0, modules.messages.Messages(None, 40, 3, 3))
        sources = modules.messages.Sources(rows.chosen(chosen), weights[chosen])
        machine.messages.around = lambda _: iter([sources])
        return machine.decision(rows, np.arange(40))[0]

    assert (total(np.array(order)) == total(np.arange(40))).all()


@given(st.integers(1, 30), st.integers(1, 8), st.integers(0, 99))
def test_blocks_are_the_rows_in_their_order(count: int, ranks: int, seed: int) -> None:
    blocks, random = load().blocks, np.random.default_rng(seed)
    dense = random.standard_normal((count, 4)) * (random.random((count, 4)) < 0.5)
    rows = blocks.compressed(dense)
    assert (rows.dense() == dense).all() and rows.squares == pytest.approx((dense**2).sum(axis=1))
    parts = [blocks.block(rows, ranks, rank).dense() for rank in range(ranks)]
    assert (np.concatenate(parts) == dense).all()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_rows_are_dropped_only_where_the_extremes_cannot_reach_them(of: Any) -> None:
    gamma, labels = np.array([3.0, -3.0, 3.0, 0.0, -3.0]), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    alpha, active = np.array([0.0, 0.0, 0.5, 0.0, 0.0]), np.arange(5)
    left = of.kernels.shrink(gamma, labels, alpha, 1.0, -1.0, 1.0, active, 5)
    assert active[:left].tolist() == [2, 3, 4], "0 may only rise and is above beta_low, 1 may only fall and is below"


def test_names_of_heuristics(of: Any) -> None:
    named = of.heuristics.heuristic
    assert (named("5pc_single", 400).first, named("500_multi", 400).first) == (20, 500)
    assert named("original", 400).way == "none" and math.isinf(named("beyond_single", 9).first)
    assert named("2_multi_of_256", 400).parts == 256 and named("2_multi", 400).parts is None
    for wrong in ("2_singel", "2_multi_of_0", "2_multi_of_"):
        with pytest.raises(SpecError, match=rf"unknown heuristic '{wrong}'.*'2_(single|multi)'"):
            named(wrong, 400)


def test_a_heuristic_may_have_the_looks_of_other_processes(of: Any) -> None:
    problem = of.data_sets.problem("gaussians", 400, 3)
    assert solved(of, problem, "2_multi_of_200", parts=1).curve == solved(of, problem, "2_multi", parts=200).curve
    seldom, often = (solved(of, problem, f"2_multi_of_{parts}").curve.elements for parts in (1, 200))
    assert often < seldom


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("+1 1:0.5\n-1 1:nan\n", r"bad:2: column 1: 'nan' is not a finite number"),
        ("+1 1:0.5\n-1\n", r"bad:2: a label without a sample"),
        ("+1 1:0.5\n-1 2:1 1:3\n", r"bad:2: '1:3' is not column:value with a column above 2"),
        ("+1 1:0.5\nyes 1:3\n", r"bad:2: label: 'yes' is not a finite number"),
        ("+1 1:0.5\n+1 1:3\n", r"bad: 1 different labels in 2 samples"),
        ("+1 1:0.5\n-1 1:1e200\n", r"bad:2: \|x\|\^2 is inf, the kernel needs less than 4.5e\+307; scale the values"),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(of: Any, tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad").write_text(text)
    with pytest.raises(SpecError, match=message) as raised:
        of.data_sets.read_libsvm(tmp_path / "bad")
    assert "\n" not in str(raised.value)
    case = own_case(data=f"file:{tmp_path / 'bad'}")
    reason, advice = of.training.obstacle(case)
    assert reason == str(raised.value) and advice.startswith("mend the file")


def own_case(**options: Any) -> Any:
    ranks = options.pop("ranks", 1)
    numbers = {"samples": 100, "parts": 16, "eps": 0.001, "most": 0, "cache_mb": 200, "alone": 0, "exchanges": 0}
    given = {"data": "moons", "variants": "original library", **numbers, **options}
    fields = {"program": "own", "entry": "training", "suite": "s", "experiment": "e", "arm": "a", "ranks": ranks}
    return case_from({**fields, "options": given} | ({"transport": "tcp"} if ranks > 1 else {}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eps": 0}, "options.eps: 0 is not above 0 and below 1"),
        ({"eps": "small"}, "options.eps: 'small' is no number"),
        ({"parts": 0}, "options.parts: 0 is no whole number of at least 1"),
        ({"parts": 1.5}, "options.parts: 1.5 is no whole number of at least 1"),
        ({"most": -1}, "options.most: -1 is no whole number of at least 0"),
        ({"samples": 0}, "options.samples: 0 are too few for two classes on 1 ranks"),
        ({"samples": 3, "ranks": 4, "variants": "original"}, "options.samples: 3 are too few for two classes on 4"),
        ({"ranks": 2}, "options.variants: library runs on one rank, not on 2"),
        ({"variants": ""}, "options.variants: it names no heuristic"),
    ],
)
def test_options_that_make_no_solution_are_an_obstacle(of: Any, options: dict[str, Any], message: str) -> None:
    reason, _ = of.training.obstacle(own_case(**options))
    assert reason.startswith(message) and "\n" not in reason


def test_rows_and_steps_that_are_not_finite_are_refused(of: Any) -> None:
    with pytest.raises(SpecError, match=r"sample 1: \|x\|\^2 is inf, the kernel needs less than"):
        of.blocks.compressed(np.array([[1.0], [1e200]]))
    problem = of.data_sets.problem("moons", 20, 1)
    machine = of.solver.Machine(
        problem.train, problem.labels, math.nan, problem.limit, of.messages.Messages(None, 20, 2, 2)
    )
    with pytest.raises(SpecError, match=r"iteration 0: the step of samples \d+ and \d+ is nan, no finite number"):
        machine.solve(of.heuristics.heuristic("original", 20), EPS, math.inf, 16, untimed)


class Recorder:
    """What a program has recorded: step and value, by event."""

    def __init__(self) -> None:
        self.events: dict[str, tuple[int, float]] = {}

    def add(self, event: str, step: int, start: int, end: int, value: float) -> None:
        assert end >= start
        self.events[event] = step, value


def test_a_quarter_of_the_samples_is_solved_five_times(of: Any) -> None:
    problem, recorder = of.data_sets.problem("gaussians", 80, 1), Recorder()
    task = of.task.Task(problem, EPS, math.inf, 16, of.messages.Messages(None, 80, 10, 10))
    of.alone.solve_quarter(SimpleNamespace(recorder=recorder), task, 3)
    step, elements = recorder.events["part"]
    iterations = recorder.events["part_iterations"][1]
    assert step == 3 and iterations % 5 == 0 and elements == 2 * 20 * iterations > 0


def test_an_exchange_is_an_all_reduce_and_two_broadcasts(of: Any) -> None:
    problem = of.data_sets.problem("moons", 40, 1)

    def work(group: Group) -> tuple[list[str], dict[str, tuple[int, float]]]:
        messages, recorder, calls = of.messages.Messages(group, 20, 2, 2), Recorder(), list[str]()
        task = of.task.Task(problem, EPS, math.inf, 16, messages)

        def called(name: str) -> Any:
            calls.append(name)
            return SimpleNamespace(wait=lambda: None)

        counted: Any = SimpleNamespace(
            all_reduce=lambda *_: called("all_reduce"),
            broadcast=lambda _, owner: called(f"of {owner}"),
            barrier=lambda: None,
        )
        messages.group = messages.broadcaster = counted
        of.alone.exchange(SimpleNamespace(recorder=recorder, rank=group.rank, seed=5), task, 0, 30)
        return calls, recorder.events

    (first, recorded), (second, nothing) = on_ranks(2, work)
    assert first == second and len(first) == 90 and first[::3] == ["all_reduce"] * 30
    assert {"of 0", "of 1"} == set(first) - {"all_reduce"} and recorded == {"exchange": (0, 30.0)} and nothing == {}


def test_unknown_names_are_an_obstacle_and_known_ones_are_none(of: Any) -> None:
    assert of.training.obstacle(own_case()) is None
    assert "unknown data 'mons'; did you mean 'moons'" in of.training.obstacle(own_case(data="mons"))[0]
    assert "unknown heuristic 'fast'" in of.training.obstacle(own_case(variants="fast"))[0]
    assert "no such file" in of.training.obstacle(own_case(data="file:nowhere"))[0]


def test_a_file_is_read_as_scikit_learn_reads_it(of: Any, tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("2 1:0.5 3:-1e-2 # first\n\n1 2:4\n2 1:1 2:2 3:3\n")
    rows, labels = of.data_sets.read_libsvm(path)
    dense, theirs = load_svmlight_file(str(path))
    assert (rows.dense() == dense.toarray()).all() and labels.tolist() == np.where(theirs == 2, 1.0, -1.0).tolist()


def test_values_that_are_no_numbers_and_missing_classes_are_refused(of: Any) -> None:
    check, dense = of.data_sets.check, np.zeros((3, 2))
    labels = np.array([1.0, -1.0, 1.0])
    check("mine", dense, labels)
    with pytest.raises(SpecError, match="data mine: 4 labels for 3 samples"):
        check("mine", dense, np.ones(4))
    with pytest.raises(SpecError, match=r"data mine: no sample has label -1; a machine needs both classes"):
        check("mine", dense, np.ones(3))
    dense[2, 1] = np.nan
    with pytest.raises(SpecError, match="data mine: sample 2, feature 1: nan is not a finite number"):
        check("mine", dense, labels)


def test_drawn_data_are_those_of_their_seed_and_real_ones_are_divided_by_it(of: Any) -> None:
    problem = of.data_sets.problem
    assert (problem("gaussians", 50, 1).train.dense() == problem("gaussians", 50, 1).train.dense()).all()
    assert (problem("gaussians", 50, 1).labels != problem("gaussians", 50, 2).labels).any()
    digits = problem("digits_3_8", 0, 1)
    assert (len(digits.train), len(digits.test)) == (286, 71)
    noisy, plain = (problem(name, 4000, 3) for name in ("noisy", "gaussians"))
    assert np.mean(noisy.labels != plain.labels) == pytest.approx(0.3, abs=0.03)


def test_real_data_are_those_of_scikit_learn(of: Any) -> None:
    dense, labels = of.data_sets.digits((1, 3, 5, 7, 9), (0, 2, 4, 6, 8))
    pixels, digits = load_digits(return_X_y=True)
    assert (dense == pixels / 16).all() and ((digits % 2 == 1) == (labels > 0)).all()
    dense, labels = of.data_sets.breast_cancer()
    features, classes = load_breast_cancer(return_X_y=True)
    assert dense == pytest.approx((features - features.mean(axis=0)) / features.std(axis=0))
    assert ((classes > 0) == (labels > 0)).all()


def test_without_scikit_learn_real_data_are_refused(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for name, data in (("digits_odd", "digits"), ("breast_cancer", "breast_cancer")):
        reason, _ = of.training.obstacle(own_case(data=name))
        assert reason == f"data '{data}' needs scikit-learn; type `make env`"


def test_files_of_another_scikit_learn_are_refused(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of.data_sets, "CANCER_SHA256", "0")
    with pytest.raises(SpecError, match=r"breast_cancer.csv: sha256 is fed3eb72"):
        of.data_sets.breast_cancer()
    monkeypatch.setattr("scaleproof.workloads.datasets.digits.SHA256", "0")
    reason, _ = of.training.obstacle(own_case(data="digits_odd"))
    assert reason.startswith("D1 sha256 of digits") and "\n" not in reason
