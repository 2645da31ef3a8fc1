"""GOAL files are read and written; what is no GOAL gives one line with its number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scaleproof.rank_programs.graph.goal import read_goal, write_goal
from scaleproof.rank_programs.graph.rank_graph import Builder, Kind
from scaleproof.simulate.engine.tables import ANY
from scaleproof.spec.errors import SpecError

TEXT = """num_ranks 2

rank 0 {  // a comment
l1: calc 1000
l2: send 10b to 1 tag 5 cpu 0 nic 0
l2 requires l1
l3: calc 20 cpu 2
l3 irequires l2
}

/* two
lines */
rank 1 {
l1: recv 10b from -1 tag 5
}
"""


def read(folder: Path, text: str):  # type: ignore[no-untyped-def]
    path = folder / "a.goal"
    path.write_text(text)
    return read_goal(path)


def test_a_file_becomes_a_graph(tmp_path: Path) -> None:
    graph = read(tmp_path, TEXT.replace("{  // a comment", "{"))
    assert graph.ranks == 2 and graph.rank.tolist() == [0, 0, 0, 1]
    assert graph.kind.tolist() == [Kind.COMPUTE, Kind.SEND, Kind.COMPUTE, Kind.RECEIVE]
    assert np.allclose(graph.amount, [1e-6, 10, 20e-9, 10]) and graph.lane.tolist() == [0, -1, 2, -1]
    assert graph.peer[[1, 3]].tolist() == [1, ANY] and graph.tag[[1, 3]].tolist() == [5, 5]
    assert (graph.before.tolist(), graph.after.tolist()) == ([0], [1])
    assert (graph.ahead.tolist(), graph.behind.tolist()) == ([1], [2])


def test_comments_are_left_out(tmp_path: Path) -> None:
    assert len(read(tmp_path, TEXT)) == 4


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    builder = Builder(3)
    first = builder.compute(0, 2e-6, lane=1)
    sent = builder.send(0, 2, 64, after=[first], tag=9)
    builder.wait_for_start(builder.compute(0, 1e-9), sent)
    builder.receive(2, ANY, 64, tag=9)
    graph = builder.graph()
    write_goal(tmp_path / "b.goal", graph)
    again = read_goal(tmp_path / "b.goal")
    for name in ("rank", "kind", "peer", "tag", "lane", "before", "after", "ahead", "behind"):
        chosen = graph.kind != Kind.COMPUTE if name in ("peer", "tag") else slice(None)
        assert getattr(graph, name)[chosen].tolist() == getattr(again, name)[chosen].tolist(), name
    assert np.allclose(graph.amount, again.amount)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rank 0 {\n}\n", "1: the file begins with `num_ranks N`"),
        ("", " no `num_ranks N` in it"),
        ("num_ranks 1\nrank 1 {\n}\n", "2: rank 1 of 1; ranks are numbered from 0"),
        ("num_ranks 1\nrank 0 {\n", " rank 0 has no closing bracket"),
        ("num_ranks 1\nrank 0 {\ncalk 5\n}\n", "3: 'calk 5' is no statement"),
        ("num_ranks 1\ncalc 5\n", "2: 'calc 5' stands outside of a rank"),
        ("num_ranks 1\nrank 0 {\nl1: calc 5\nl1: calc 5\n}\n", "4: label 'l1' is there twice in rank 0"),
        ("num_ranks 1\nrank 0 {\nl1: calc 5\nl1 requires l2\n}\n", "4: rank 0 has no label 'l2'"),
        ("num_ranks 1\nrank 0 {\nsend 5b from 0\n}\n", "3: a message is sent `to` a rank"),
        ("num_ranks 1\nrank 0 {\nrecv 5b from 0 tag -1\n}\n", "3: -1 stands for any rank"),
        ("num_ranks 0\n", "1: 0 ranks; there are 1 to"),
    ],
)
def test_what_is_no_goal_is_refused_in_one_line_with_its_number(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError) as error:
        read(tmp_path, text)
    assert f"a.goal:{message}" in str(error.value) and "\n" not in str(error.value)


def test_a_graph_that_goal_cannot_say_is_refused(tmp_path: Path) -> None:
    builder = Builder(2)
    builder.put(0, 1, 8)
    with pytest.raises(SpecError, match="GOAL has no one-sided writes"):
        write_goal(tmp_path / "c.goal", builder.graph())


def test_a_file_that_is_missing_or_no_text_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "bytes.goal").write_bytes(b"\xff\xfe\x00")
    for name, message in (("none.goal", "No such file or directory"), ("bytes.goal", "no text file")):
        with pytest.raises(SpecError, match=f"{name}: {message}$"):
            read_goal(tmp_path / name)
