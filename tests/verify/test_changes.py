"""In what runs differ."""

from __future__ import annotations

from tests.verify.traces import TEST, forwards, losses, run, steps
from torchfix_codemods.verify.changes import changes


def texts(before, after):
    return [(c.key.aspect.value, c.key.label, c.before, c.after) for c in changes(before, after)]


def test_equal_runs():
    one = {"rows": losses(1.0, float("nan")), "output": "loss 1.0", "forwards": [forwards()], "steps": [steps()]}
    assert changes(run(**one), run(**one)) == []


def test_a_model_stands_for_its_parts():
    def side(training):
        parts = ("Net", "Net.fc: Linear", "Net.body.0: Conv2d")
        return run(forwards=[forwards(TEST, module, training=training) for module in parts])

    assert texts(side(True), side(False)) == [("mode at forward", "Net", "train ×4", "eval ×4")]


def test_a_part_that_alone_changes_is_told():
    before = run(forwards=[forwards(), forwards(module="Net.bn: BatchNorm2d", training=True)])
    after = run(forwards=[forwards(), forwards(module="Net.bn: BatchNorm2d", training=False)])
    assert texts(before, after) == [("mode at forward", "Net.bn: BatchNorm2d", "train ×4", "eval ×4")]


def test_the_number_of_forwards_is_not_their_mode():
    before, after = run(forwards=[forwards(count=4)]), run(forwards=[forwards(count=2)])
    assert texts(before, after) == [("forwards", "Net", "4", "2")]


def test_lines_that_moved_change_nothing():
    assert changes(run(forwards=[forwards(line=10)]), run(forwards=[forwards(line=14)])) == []


def test_series_are_compared_as_far_as_both_go():
    assert texts(run(losses(1.0, 2.0)), run(losses(1.0, 2.0, 3.0))) == []
    assert texts(run(losses(1.0, 2.0)), run(losses(1.0, 2.5))) == [("values", "loss", "2 (event 2)", "2.5")]


def test_numbers_of_lines_that_come_or_go_are_not_mixed_up():
    before = run(output="loss 0.5\nfailed\nloss 0.25\n")
    after = run(output="loss 0.5\nscore 7\nloss 0.25\n")
    assert texts(before, after) == [("printed text", "text", "failed", "score #")]


def test_printed_numbers_are_values():
    assert texts(run(output="loss 0.5"), run(output="loss 0.6")) == [
        ("values", "printed numbers", "0.5 (loss #, time 1)", "0.6"),
    ]


def test_a_graph_may_grow_a_little():
    def side(saved):
        return run(graphs={"sizes": [["train.py", "train", 10, [], "Net", 5, saved]], "most": 5})

    assert texts(side(100_000), side(105_000)) == []
    assert texts(side(100_000), side(200_000)) == [("bytes saved for backward", "Net", "100000", "200000")]
    assert texts(side(100_000), side(99_000)) == [("bytes saved for backward", "Net", "100000", "99000")]
