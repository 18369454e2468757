"""Contracts for CUDA: on a GPU where one is, and else as far as a CPU that stands in for it can tell."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torchfix_codemods.verify.contract import judge
from torchfix_codemods.verify.interpreter import present
from torchfix_codemods.verify.sides import execute, obstacle

from . import stand_in
from .collection import EXECUTED, identify

CUDA = [case for case in EXECUTED if "cuda" in case.contract.devices]
# Pinned and reserved memory need a GPU, and the stand-in counts the memory of the CPU with its own. Calls of a method that
# is replaced are counted twice, since the stand-in hands them on.
UNTELLABLE = {
    "dataloader-pin-memory": {"batches pinned"},
    "gc-before-empty-cache": {"reserved memory"},
    "torch-load-map-location": {"peak memory"},
    "item-in-hot-loop": {"asked"},
}


@pytest.mark.parametrize("case", CUDA, ids=identify)
def test_contract_holds_on_cuda(case):
    if missing := obstacle(case, "cuda", present()):
        pytest.skip(missing)
    assert [(v.observation, v.before, v.after, v.breach) for v in execute(case, "cuda") if v.breach] == []


@pytest.mark.parametrize("case", CUDA, ids=identify)
def test_the_harness_runs_on_cuda_and_its_promises_are_possible(case):
    verdicts = judge(case.contract.on("cuda"), *(stand_in.observe(case, code) for code in (case.before, case.after)))
    told = [v for v in verdicts if v.observation not in UNTELLABLE.get(case.rule, ())]
    assert [(v.observation, v.before, v.after, v.breach) for v in told if v.breach] == []


@pytest.mark.parametrize("case", [case for case in CUDA if "cuda" in case.contract.instead], ids=identify)
def test_what_is_promised_on_cuda_alone_can_break(case):
    sides = [stand_in.observe(case, code) for code in (case.after, case.before)]
    changes = any(not promise.keeps_value for promise in case.contract.on("cuda").promises.values())
    assert any(verdict.breach for verdict in judge(case.contract.on("cuda"), *sides)) == changes


def test_tensors_of_the_stand_in_lie_apart():
    with stand_in.Apart():
        here, there = torch.ones(2), torch.ones(2, device="cuda")
        layer = nn.Linear(2, 1).to("cuda")
        assert {str(t.device) for t in (here, there.cpu(), there.to("cpu"))} == {"cpu"}
        assert {str(t.device) for t in (there, there + 1, here.cuda(), here.to(there.device), layer.weight)} == {"cuda:0"}
        assert not torch.ones(1, requires_grad=True).to("cuda").is_leaf
        layer(there).backward()
        assert str(layer.weight.grad.device) == "cuda:0"
        with pytest.raises(RuntimeError, match="same device"):
            layer(here)
        with pytest.raises(TypeError, match="to numpy"):
            there.numpy()


def test_the_stand_in_counts_memory_that_is_held_at_once():
    memory = stand_in.Memory()
    memory.start()
    first = torch.zeros(1000, dtype=torch.uint8)
    second = torch.zeros(500, dtype=torch.uint8)
    del first
    third = torch.zeros(700, dtype=torch.uint8)
    assert memory.stop() == 1500
    assert (second.sum() + third.sum()).item() == 0
