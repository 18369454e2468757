"""Contracts for CUDA: on a GPU where one is, and else as far as a CPU that stands in for it can tell."""

from __future__ import annotations

import pytest

from torchfix_codemods.verify.contract import judge
from torchfix_codemods.verify.interpreter import present
from torchfix_codemods.verify.sides import execute, obstacle

from . import stand_in
from .collection import EXECUTED, identify

CUDA = [case for case in EXECUTED if "cuda" in case.contract.devices]
# Where nothing else is promised on CUDA, tensors that lie apart play no part.
POSSIBLE = [case for case in CUDA if "cuda" not in case.contract.instead]
# The first two need a GPU; calls of a method that is replaced are counted twice, since the stand-in hands them on.
UNTELLABLE = {"reserved memory", "batches pinned", "asked"}


@pytest.mark.parametrize("case", CUDA, ids=identify)
def test_contract_holds_on_cuda(case):
    if missing := obstacle(case, "cuda", present()):
        pytest.skip(missing)
    assert [(v.observation, v.before, v.after, v.breach) for v in execute(case, "cuda") if v.breach] == []


@pytest.mark.parametrize("case", POSSIBLE, ids=identify)
def test_the_harness_runs_on_cuda_and_its_promises_are_possible(case):
    verdicts = judge(case.contract.on("cuda"), *(stand_in.observe(case, code) for code in (case.before, case.after)))
    assert [(v.observation, v.before, v.after, v.breach) for v in verdicts if v.breach and v.observation not in UNTELLABLE] == []


def test_most_contracts_can_be_tried_without_a_gpu():
    assert len(POSSIBLE) > 0.8 * len(CUDA)


def test_the_stand_in_counts_memory_that_is_held_at_once():
    import torch

    memory = stand_in.Memory()
    memory.start()
    first = torch.zeros(1000, dtype=torch.uint8)
    second = torch.zeros(500, dtype=torch.uint8)
    del first
    third = torch.zeros(700, dtype=torch.uint8)
    assert memory.stop() == 1500
    assert (second.sum() + third.sum()).item() == 0
