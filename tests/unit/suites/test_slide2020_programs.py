"""The programs of slide2020: hash functions, tables and active neurons against plain references, and training against
torch."""

from __future__ import annotations

import importlib
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from scaleproof.programs.own import load_entry
from scaleproof.spec.case import OwnCase
from scaleproof.spec.errors import SpecError
from tests.short_form import case_from

PROGRAMS = Path(__file__).resolve().parents[3] / "suites" / "slide2020" / "programs"
OPTIONS: dict[str, Any] = {
    "method": "slide",
    "data": "independent",
    "labels": 300,
    "train": 512,
    "test": 64,
    "two": 0.3,
    "batch": 64,
    "classes": 20,
    "hash": "simhash",
    "bits": 5,
    "tables": 8,
    "room": 64,
    "policy": "fifo",
    "sampling": "union",
    "most": 20,
    "least": 2,
    "fill": 0,
    "shuffled": 0,
    "centred": 0,
    "permuted": 0,
    "rehash": 0,
    "spread": 0.1768,
    "adam": "lazy",
    "pages": "ordinary",
    "period": 50,
    "decay": 0.0,
    "rate": 0.01,
    "shift": 3,
    "queries": 16,
    "rates": 0,
}


def module(name: str) -> Any:
    load_entry(PROGRAMS, "training")
    return importlib.import_module(f"suite_programs.{name}")


def plain_winners(row: np.ndarray, kind: str, places: np.ndarray, count: int) -> list[int]:
    """Codes of bins by their definition: candidates of a bin, then its best; -1 without a candidate."""
    found = []
    members = set(np.argsort(-row, kind="stable")[:30].tolist())
    for number in range(count):
        deal, group = divmod(number, len(row) // 8)
        inside = [at for at in range(len(row)) if places[deal, at] // 8 == group]
        if kind == "dwta":
            inside = [at for at in inside if row[at] != 0]
        if kind == "minhash":
            inside = [at for at in inside if at in members and row[at] > 0]
        if not inside:
            found.append(-1)
        elif kind == "minhash":
            found.append(min(int(places[deal, at]) % 8 for at in inside))
        else:
            found.append(int(places[deal, max(inside, key=lambda at: row[at])]) % 8)
    return found


@pytest.mark.parametrize("kind", ["wta", "dwta", "minhash"])
def test_winners_of_bins_are_those_of_a_plain_reference(kind: str) -> None:
    hashing, generator = module("hashing"), np.random.default_rng(1)
    made = hashing.WinnerHash(kind, 128, 3, 20, 7)
    for density in (1.0, 0.3, 0.05):
        row = generator.standard_normal(128).astype(np.float32) * (generator.random(128) < density)
        winners = np.empty(60, np.int32)
        hashing.bin_winners(row, hashing.KINDS[kind], made.places, winners)
        assert winners.tolist() == plain_winners(row, kind, made.places, 60)


def test_an_empty_bin_borrows_from_one_with_a_winner_and_never_matches_as_empty() -> None:
    hashing = module("hashing")
    winners = np.full(200, -1, np.int32)
    winners[[3, 50, 120]] = 5, 6, 7
    dense = np.empty(200, np.int32)
    hashing.densify(winners, np.uint64(0x9E3779B97F4A7C15), dense)
    assert set(dense.tolist()) == {5, 6, 7}, "every empty bin has the code of a bin with a winner"
    assert dense[[3, 50, 120]].tolist() == [5, 6, 7]
    assert min((dense == code).sum() for code in (5, 6, 7)) > 20, "they ask different bins"


@pytest.mark.parametrize("name", ["simhash", "wta", "dwta", "minhash"])
def test_the_more_alike_two_vectors_are_the_more_codes_they_share(name: str) -> None:
    hashing, generator = module("hashing"), np.random.default_rng(2)
    made = hashing.family(name, 128, 1, 400, 11)
    anchors = np.abs(generator.standard_normal((60, 128))).astype(np.float32)
    others = np.abs(generator.standard_normal((60, 128))).astype(np.float32)
    codes = made.codes(anchors)
    shared = []
    for part in (0.0, 0.3, 0.6, 0.9, 1.0):
        shared.append(float((codes == made.codes(part * anchors + (1 - part) * others)).mean()))
    assert shared[-1] == 1.0
    assert all(after > before for before, after in zip(shared, shared[1:], strict=False)), shared


def test_bits_of_simhash_agree_as_the_angle_says() -> None:
    hashing, generator = module("hashing"), np.random.default_rng(3)
    made = hashing.SimHash(128, 1, 4000, 5)
    a = generator.standard_normal((1, 128)).astype(np.float32)
    b = generator.standard_normal((1, 128)).astype(np.float32) + a
    cosine = float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))
    agree = float((made.codes(a) == made.codes(b)).mean())
    assert agree == pytest.approx(1 - math.acos(cosine) / math.pi, abs=0.03)
    signs = (a @ made.projections)[0] < 0
    assert (made.codes(a)[:, 0] == signs).all()
    assert (made.projections != 0).mean() == pytest.approx(1 / 3, abs=0.01)


def test_codes_of_a_table_make_a_number_and_overlap_with_a_smaller_shift() -> None:
    joined = module("hashing").joined
    assert joined(np.array([1, 2, 7], np.int32), 3) == 0o127
    assert joined(np.array([0, 4], np.int32), 2) == joined(np.array([1, 0], np.int32), 2)


def tables_of(policy: str, room: int, codes: np.ndarray, threads: int = 2, seed: int = 1) -> Any:
    tables = module("tables").Tables(len(codes), int(codes.max()) + 1, room, policy, module("memory").allocator(False))
    with ThreadPoolExecutor(2) as pool:
        tables.insert(codes, pool, threads, seed)
    return tables


def test_fifo_keeps_the_last_and_a_reservoir_any_with_one_probability() -> None:
    codes = np.zeros((3, 100), np.int32)
    fifo = tables_of("fifo", 8, codes)
    assert all(set(row.tolist()) == set(range(92, 100)) for row in fifo.neurons[:, 0])
    assert fifo.counts.tolist() == [[100]] * 3
    kept = np.zeros(100)
    for seed in range(100):
        for row in tables_of("reservoir", 8, codes, seed=1000 * seed).neurons[:, 0]:
            assert len(set(row.tolist())) == 8
            kept[row] += 1
    halves = kept[:50].sum() / kept.sum()
    assert halves == pytest.approx(0.5, abs=0.05)
    assert kept.min() > 0


def test_what_buckets_hold_is_found() -> None:
    codes = np.random.default_rng(4).integers(0, 16, (5, 200)).astype(np.int32)
    tables, asked = tables_of("fifo", 200, codes), codes[:, :7].copy()
    found = module("tables").held(tables.neurons, tables.counts, asked, np.arange(200, dtype=np.int32))
    assert (found == (codes[:, None, :] == asked[:, :, None]).any(0)).all()


def active(sampling: str, codes: np.ndarray, query: int, **given: int) -> tuple[list[int], np.ndarray]:
    """The active neurons of a query with the codes of a neuron and the label 3; which buckets hold which neurons."""
    kernels, tables = module("kernels"), tables_of("fifo", codes.shape[1], codes)
    labels, count = np.array([3, -1], np.int32), codes.shape[1]
    seen, into, state = np.zeros(count, np.int16), np.empty(count + 2, np.int32), np.array([77], np.uint64)
    options = {"most": 10, "least": 2, "fill": 0, **given}
    how = np.array([kernels.SAMPLINGS[sampling], options["most"], options["least"], options["fill"]])
    alias = np.arange(count, dtype=np.int32)
    found = kernels.active_neurons(
        how, labels, (tables.neurons, tables.counts), codes[:, query].copy(), alias, seen, into, state
    )
    assert not seen.any(), "ready for the next sample"
    chosen = into[:found].tolist()
    assert chosen[0] == 3 and len(set(chosen)) == found
    return chosen, (codes == codes[:, query : query + 1]).sum(0)


CODES = np.random.default_rng(5).integers(0, 8, (12, 150)).astype(np.int32)


def test_a_union_is_all_that_the_buckets_hold() -> None:
    chosen, shared = active("union", CODES, 40)
    assert set(chosen) == set(np.flatnonzero(shared).tolist()) | {3}


def test_top_k_takes_those_of_the_most_buckets() -> None:
    chosen, shared = active("topk", CODES, 40, most=10)
    others = np.delete(shared, 3)
    assert len(chosen) == 11
    assert min(shared[chosen[1:]]) >= np.sort(others)[-10]


def test_a_hard_threshold_takes_those_of_so_many_buckets() -> None:
    chosen, shared = active("threshold", CODES, 40, least=3)
    assert set(chosen) == set(np.flatnonzero(shared >= 3).tolist()) | {3}


def test_vanilla_stops_when_there_are_enough() -> None:
    chosen, shared = active("vanilla", CODES, 40, most=10)
    assert 10 <= len(chosen) - 1 < 10 + int((CODES[:, 40:41] == CODES).sum(1).max())
    assert set(chosen) <= set(np.flatnonzero(shared).tolist()) | {3}


def test_random_ones_fill_up_and_all_is_all() -> None:
    assert len(active("random", CODES, 40, fill=50)[0]) == 50
    chosen, shared = active("union", CODES, 40, fill=140)
    assert len(chosen) == 140 and set(np.flatnonzero(shared).tolist()) <= set(chosen)
    assert len(active("all", CODES, 40)[0]) == 150


def losses(steps: int = 6, threads: int = 1, **given: Any) -> tuple[list[float], Any]:
    """Losses of a small training, and its network."""
    training, data = module("training"), module("extreme_data")
    of = training.Options({**OPTIONS, **given})
    train, _ = data.make("independent", 300, of.number("train"), of.number("test"), of.real("two"), 3)
    made = training.network(of, threads, 3)
    made.rebuild()
    found = []
    for step in range(steps):
        rows = np.arange(64 * step, 64 * step + 64) % len(train)
        found.append(made.step(training.batch_of(train, rows), of.real("rate")))
    made.close()
    return found, made


def test_with_every_neuron_active_it_trains_as_torch_does() -> None:
    ours, slide = losses(sampling="all")
    theirs, full = losses(method="full")
    assert np.abs(np.subtract(ours, theirs)).max() < 1e-3
    apart = np.abs(slide.weights().output - full.weights().output)
    assert apart.mean() < 1e-4, "Adam makes large steps of tiny gradients, so single weights differ more"


def test_rows_without_a_gradient_stay_with_lazy_adam_and_move_on_with_dense() -> None:
    lazy, dense = (losses(steps=3, adam=adam, bits=9, tables=1)[1] for adam in ("lazy", "dense"))
    start = module("slide_network").initial(300, 3).output
    untouched = (lazy.weights().output == start).all(1)
    assert 0 < untouched.sum() < 300
    assert lazy.changed_rows < dense.changed_rows == 3 * 300


@pytest.mark.parametrize("method", ["slide", "sampled"])
def test_it_learns_what_it_has_seen(method: str) -> None:
    training, data = module("training"), module("extreme_data")
    _, made = losses(60, threads=2, method=method, two=0.0, sampling="random", fill=60, classes=60)
    train, _ = data.make("independent", 300, 512, 64, 0.0, 3)
    weights = made.weights()
    scores = training.hidden_of(weights, train) @ weights.output.T + weights.output_bias
    assert (scores.argmax(1) == train.labels[:, 0]).mean() > 0.5


def test_sampled_softmax_over_every_label_is_the_full_one() -> None:
    """Labels are drawn without replacement, so that as many as there are is each of them once."""
    torch_softmax, slide, batch = module("torch_softmax"), module("slide_network"), samples_of(50)
    weights = slide.initial(50, 1)
    weights.output[:] *= 50
    sampled, full = (torch_softmax.TorchNetwork(weights, classes, 0.01, 1, 1) for classes in (50, 0))
    assert sampled.step(batch, 0.01) == pytest.approx(full.step(batch, 0.01), rel=1e-5)
    assert sampled.changed_rows == full.changed_rows == 50


def samples_of(labels: int, two: float = 0.3, count: int = 64) -> Any:
    """A batch of made-up samples."""
    train, _ = module("extreme_data").make("independent", labels, count, 8, two, 1)
    return module("slide_network").batch_of(train, np.arange(count))


def test_sampled_softmax_changes_the_rows_that_it_counts_and_no_other() -> None:
    torch_softmax, slide, batch = module("torch_softmax"), module("slide_network"), samples_of(900)
    weights = slide.initial(900, 1)
    made = torch_softmax.TorchNetwork(weights, 40, 0.01, 1, 1)
    made.step(batch, 0.01)
    moved = (made.weights().output != weights.output).any(1)
    known = np.unique(batch.labels[batch.labels >= 0])
    assert moved[known].all() and moved.sum() == made.changed_rows
    assert len(known) + 40 >= made.changed_rows > 40, "a label that is drawn too counts once"


def test_the_softmax_over_a_subset_has_the_gradients_of_autograd() -> None:
    torch, kernels, generator = pytest.importorskip("torch"), module("kernels"), np.random.default_rng(6)
    weights, bias = generator.standard_normal((40, 128)).astype(np.float32), np.zeros(40, np.float32)
    bias[:] = generator.standard_normal(40)
    hidden, active = np.abs(generator.standard_normal(128)).astype(np.float32), np.array([7, 3, 22, 31, 5], np.int32)
    w, b, h = (torch.tensor(each, requires_grad=True) for each in (weights, bias, hidden))
    chosen = torch.from_numpy(active).long()
    log = torch.log_softmax(w[chosen] @ h + b[chosen], 0)
    expected = -(log[0] + log[1]) / 2  # the first two are the sample's labels
    (0.25 * expected).backward()
    gradient, bias_gradient = np.zeros_like(weights), np.zeros_like(bias)
    touched, delta = np.zeros(40, np.uint8), np.full(128, 9, np.float32)
    logits = np.empty(5, np.float32)
    loss = kernels.output_layer(
        active, 5, 2, 0.25, hidden, weights, bias, gradient, bias_gradient, touched, delta, logits
    )
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    for ours, theirs in ((gradient, w), (bias_gradient, b), (delta, h)):
        assert np.abs(ours - theirs.grad.numpy()).max() < 1e-5
    assert set(np.flatnonzero(touched).tolist()) == set(active.tolist())


def test_a_sample_with_its_label_alone_learns_nothing() -> None:
    """Empty buckets: the softmax over one neuron is 1."""
    found, made = losses(steps=2, sampling="threshold", least=9, two=0.0)
    start = module("slide_network").initial(300, 3).output
    assert found == [0, 0] and made.active == 2 * 64
    assert (made.weights().output == start).all()


def test_two_threads_do_the_work_of_one() -> None:
    one, two = (losses(steps=1, threads=threads) for threads in (1, 2))
    assert one[0][0] == pytest.approx(two[0][0], rel=1e-5)
    assert one[1].active == two[1].active and one[1].changed_rows == two[1].changed_rows
    one, two = (losses(steps=10, threads=threads, sampling="all") for threads in (1, 2))
    assert two[0][-1] == pytest.approx(one[0][-1], rel=0.05), "few additions are lost without locks"


def test_what_all_neurons_have_in_common_moves_no_bucket_of_centred_tables() -> None:
    for centred in (0, 1):
        made = losses(steps=0, centred=centred)[1]
        before = made.tables.counts.copy()
        made.output.weights[:] += np.linspace(-1, 1, 128, dtype=np.float32)
        made.rebuild()
        assert (made.tables.counts != before).mean() < 0.02 if centred else (made.tables.counts != before).any()


def test_shuffled_tables_return_as_many_neurons_but_others() -> None:
    training, found = module("training"), []
    for shuffled in (0, 1):
        made = losses(steps=0, shuffled=shuffled, bits=9)[1]
        found.append(training.retrieved_share(made, made.output.weights[:50] * 100))
    assert found[0][1] == pytest.approx(found[1][1]), "as many"
    assert found[0][0] > 2 * found[0][1] and found[1][0] < 2 * found[1][1], "the best ones, and any"


def test_hash_functions_are_drawn_anew_after_so_many_samples() -> None:
    made = losses(steps=1, rehash=128)[1]
    first = made.family
    made.rebuild()
    assert made.family is first, "64 samples"
    made.step(samples_of(300), 0.01)
    made.rebuild()
    assert (made.family.projections != first.projections).any()
    kept = losses(steps=3)[1]
    assert (kept.family.projections == first.projections).all()


def test_eight_codes_are_hashed_to_the_buckets_of_the_authors_settings() -> None:
    hashing, rows = module("hashing"), np.random.default_rng(8).standard_normal((500, 128)).astype(np.float32)
    made = hashing.family("dwta", 128, 8, 20, 3)
    codes = made.codes(rows)
    assert made.buckets == 2**18 and codes.min() >= 0 and codes.max() < 2**18
    assert (codes == made.codes(rows.copy())).all(), "equal rows have equal codes"
    assert len(np.unique(codes)) > 0.9 * min(codes.size, 2**18) * 0.9, "others rarely have"
    assert hashing.family("dwta", 128, 3, 20, 3).buckets == 2**9


def test_the_input_layer_begins_with_the_spread_that_is_given() -> None:
    slide = module("slide_network")
    wide, narrow = slide.initial(20, 1, 500), slide.initial(20, 1, 500, 0.01)
    assert wide.first.std() == pytest.approx(2 / math.sqrt(128), rel=0.02)
    assert narrow.first.std() == pytest.approx(0.01, rel=0.02) and (narrow.output == wide.output).all()
    made = module("training").network(module("training").Options({**OPTIONS, "spread": 0.01}), 1, 1)
    assert made.input.weights.std() == pytest.approx(0.01, rel=0.02)
    made.close()


@pytest.mark.parametrize("kind", ["independent", "grouped"])
def test_the_same_seed_gives_the_same_launch_and_another_does_not(kind: str) -> None:
    assert losses(fill=40, data=kind)[0] == losses(fill=40, data=kind)[0]
    data = module("extreme_data")
    first, again, other = (data.make(kind, 50, 40, 8, 0.3, seed)[0] for seed in (1, 1, 2))
    assert (first.indices == again.indices).all() and (first.labels == again.labels).all()
    assert len(first.indices) != len(other.indices) or (first.indices != other.indices).any()


def test_samples_are_noisy_copies_of_the_prototype_of_their_label() -> None:
    train, _ = module("extreme_data").make("independent", 20, 4000, 8, 0.5, 1)
    lengths = np.diff(train.starts)
    one = train.labels[:, 1] < 0
    assert one.mean() == pytest.approx(0.5, abs=0.05)
    assert lengths[one].mean() == pytest.approx(0.6 * 30 + 10, abs=0.3)
    assert lengths[~one].mean() == pytest.approx(2 * 0.6 * 30 + 10, abs=0.3)
    assert np.abs(train.values**2 * lengths - 1).max() < 1e-5
    moved = module("extreme_data").permuted(train, 1)
    assert (moved.labels != train.labels).any() and (np.sort(moved.labels, 0) == np.sort(train.labels, 0)).all()


def test_labels_of_a_group_share_features_and_frequencies_follow_zipfs_law() -> None:
    data, labels = module("extreme_data"), 500
    prototypes = data._prototypes("grouped", labels, data._zipf_cdf(data.FEATURES), 4)
    members = [set(row) for row in prototypes.tolist()]
    assert {len(each) for each in members} == {30}

    def shared(apart: int) -> float:
        return float(np.mean([len(members[at] & members[at + apart]) for at in range(labels - apart)]))

    assert shared(10) > 20 * 20 / 30 and shared(10) > shared(1) + 10, "10 groups of 50: every tenth label is of one"
    drawn = data._labels(np.random.default_rng(1), "grouped", labels, 20_000, 0.0)[:, 0]
    share = np.bincount(drawn, minlength=labels) / len(drawn)
    total = (1 / np.arange(1, labels + 1)).sum()
    assert share[[0, 1, 9]] == pytest.approx([1 / total, 1 / (2 * total), 1 / (10 * total)], rel=0.1)
    assert len(data.make("grouped", 20, 40, 8, 0.5, 1)[0]) == 40, "fewer labels than a group has"


def test_tables_are_rebuilt_at_a_constant_or_a_growing_period() -> None:
    rebuilds = module("training").Rebuilds
    constant, growing = rebuilds(50, 0.0), rebuilds(50, 0.5)
    assert [step for step in range(260) if constant.due(step)] == [0, 50, 100, 150, 200, 250]
    found = [step for step in range(400) if growing.due(step)]
    assert found == [0, 50, 133, 269]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"data": "groups"}, "options.data: unknown value 'groups'; did you mean 'grouped'"),
        ({"hash": "simhsh"}, "options.hash: unknown value 'simhsh'; did you mean 'simhash'"),
        ({"labels": 0}, "options.labels: 0 is no whole number of at least 11"),
        ({"period": 0}, "options.period: 0 is no whole number of at least 1"),
        ({"most": 0}, "options.most: 0 is no whole number of at least 1"),
        ({"queries": -3}, "options.queries: -3 is no whole number of at least 1"),
        ({"rate": -0.1}, "options.rate: -0.1 is no number from 0 to 1"),
        ({"rate": 0.0}, "options.rate: 0 lets nothing be learned"),
        ({"rate": float("nan")}, "options.rate: nan is no number from 0 to 1"),
        ({"spread": "wide"}, "options.spread: 'wide' is no number from 0 to 10"),
        ({"fill": 301}, "options.fill: 301 neurons of 300 labels"),
        ({"tables": 1.5}, "options.tables: 1.5 is no whole number of at least 1"),
        ({"shift": 4}, "options.shift: 4 is no whole number from 0 to 3"),
        ({"two": 1.5}, "options.two: 1.5 is no number from 0 to 1"),
        ({"shuffled": 2}, "options.shuffled: 2 is no whole number from 0 to 1"),
        ({"bits": 40}, r"options.bits: 2\^40 buckets a table are too many; at most 24"),
        ({"batch": 600}, "options.batch: 600 samples of 512"),
        ({"method": "sampled", "classes": 301}, "options.classes: 301 of 300 labels"),
        ({"hash": "dwta", "bits": 9}, "options.bits: 9 codes of 3 bits are too many; at most 8"),
    ],
)
def test_a_wrong_option_is_one_line(given: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said) as raised:
        module("training").Options({**OPTIONS, **given})
    assert "\n" not in str(raised.value)


TABLES_ALONE = {"labels": 100, "units": 16, "hash": "simhash", "bits": 3, "tables": 4, "room": 8}


@pytest.mark.parametrize(
    ("entry", "given", "said"),
    [
        ("retrieval", {"queries": 0, "shuffled": 0}, "options.queries: 0 is no whole number of at least 1"),
        ("retrieval", {"queries": 5, "shuffled": 0, "bits": 30}, r"options.bits: 2\^30 buckets a table are too many"),
        (
            "retrieval",
            {"queries": 5, "shuffled": 0, "labels": 10},
            "options.labels: 10 is no whole number of at least 11",
        ),
        ("insertion", {"policy": "lifo"}, "options.policy: unknown value 'lifo'; did you mean 'fifo'"),
        ("insertion", {"policy": "fifo", "units": 4}, "options.units: 4 is no whole number of at least 8"),
        ("insertion", {"policy": "fifo", "room": 0}, "options.room: 0 is no whole number of at least 1"),
    ],
)
def test_every_program_checks_its_options_before_it_begins(entry: str, given: dict[str, Any], said: str) -> None:
    context = SimpleNamespace(case=own_case(entry, TABLES_ALONE | given), seed=1)
    with pytest.raises(SpecError, match=said) as raised:
        module(entry).run(context)
    assert "\n" not in str(raised.value)


def own_case(entry: str, options: dict[str, Any], **fields: Any) -> OwnCase:
    """A case of the suite."""
    short = {"program": "own", "entry": entry, "suite": "slide2020", "experiment": "e", "arm": "a", "ranks": 1}
    case = case_from({**short, "options": options, **fields})
    assert isinstance(case, OwnCase)
    return case


def test_huge_pages_are_asked_of_the_kernel() -> None:
    memory = module("memory")
    if memory.huge_pages_obstacle() is not None:
        pytest.skip("the kernel has no transparent huge pages")
    before = memory.huge_mib()
    plain = memory.allocator(False)((8 << 20,), np.float32)
    plain[:] = 1
    assert memory.huge_mib() - before < 4
    huge = memory.allocator(True)((8 << 20,), np.float32)
    huge[:] = 1
    assert memory.huge_mib() - before > 16
    assert huge.ctypes.data % memory.HUGE == 0


class Notes:
    """Stands for a rank's context: what a program records."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}
        self.recorder, self.seed = self, 3

    def add(self, event: str, step: int, start_ns: int, end_ns: int, nbytes: int = 0, value: float = 0.0) -> None:
        self.values[event] = value


@pytest.mark.parametrize(
    ("method", "rates"), [("slide", ["visit", "adam", "fixed", "hash", "insert"]), ("full", ["flop", "byte", "fixed"])]
)
def test_each_operation_of_the_model_is_timed(method: str, rates: list[str]) -> None:
    training, data = module("training"), module("extreme_data")
    of = training.Options({**OPTIONS, "method": method})
    train, _ = data.make("independent", 300, 512, 64, 0.3, 3)
    made = training.network(of, 1, 3)
    made.rebuild()
    made.step(training.batch_of(train, np.arange(64)), 0.01)
    notes: Any = Notes()
    training._rates(notes, of, made, train, own_case("training", OPTIONS, iterations=1))
    made.close()
    assert sorted(notes.values) == sorted(f"rate_{name}" for name in rates)
    assert all(0 < seconds < 1 for seconds in notes.values.values())


def test_active_neurons_are_those_of_the_timed_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count begins after the warm-up, for the probe of visits too."""
    training, rates, asked = module("training"), module("rates"), list[float]()

    def of_slide(made: Any, active: float, fixed: Any, seed: int) -> dict[str, float]:
        asked.append(active)
        return {}

    monkeypatch.setattr(rates, "of_slide", of_slide)
    case = own_case("training", OPTIONS, iterations=2, warmup=3)
    of = training.Options(case.options)
    made = training.network(of, 1, 3)
    made.active, made.steps = 2 * 64 * 30, 5
    train, _ = module("extreme_data").make("independent", 300, 512, 64, 0.3, 3)
    notes: Any = Notes()
    training._rates(notes, of, made, train, case)
    made.close()
    assert asked == [30]


def test_the_cosine_is_that_with_the_best_neurons() -> None:
    neurons = np.zeros((40, 8), np.float32)
    neurons[:10, 0], neurons[10:, 1] = 2, -3
    asked = np.array([[1, 1, 0, 0, 0, 0, 0, 0], [0] * 8], np.float32)
    assert module("training").best_cosine(neurons, asked) == pytest.approx(0.5 / math.sqrt(2))
