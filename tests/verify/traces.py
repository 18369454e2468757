"""Runs as their traces would tell them, made by hand."""

from __future__ import annotations

from torchfix_codemods.rule import Safety
from torchfix_codemods.verify.changes import changes
from torchfix_codemods.verify.facts import facts_of
from torchfix_codemods.verify.judgement import Applied, judge
from torchfix_codemods.verify.trace import Place, Process, Row

TRAIN, TEST = ("train.py:<module>", "train.py:train"), ("train.py:<module>", "train.py:test")


def forwards(within=TRAIN, module="Net", training=True, gradients=True, count=4, line=10):
    file, function = within[-1].split(":")
    return [file, function, line, list(within), module, training, gradients, count]


def steps(count=4, stale=0):
    return ["train.py", "train", 12, list(TRAIN), "SGD", count, stale]


def losses(*values):
    return {"backward": [Row(Place("train.py", "train", 11), "", number, {"value": value}) for number, value in enumerate(values, 1)]}


def ended(kind, function="train"):
    return {"raised": [Row(Place("train.py", function, 11), kind, 1, {"value": "no"})]}


def raised(kind, function="train", count=1):
    return {"reached": {"raised": [["train.py", function, 11, kind, "no", count]], "lines": [], "complete": True}}


def run(rows=None, output="", ending="", **totals):
    """The facts of a run of one process."""
    return facts_of([Process("main", rows or {}, totals)], output, ending)


def fix(*effects, rule="some-rule", safety=Safety.SAFE, function="train", reached=True):
    return Applied(rule, safety, effects, "train.py", function, 10, "", reached)


def verdicts(before, after, *fixes):
    """Aspect, label and kind of each change."""
    return {(j.change.key.aspect.value, j.change.key.label): j.kind.value for j in judge(changes(before, after), fixes)}
