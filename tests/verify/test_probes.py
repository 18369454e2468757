"""Probes measure what they say."""

from __future__ import annotations

import warnings

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  # only where torch is

from torchfix_codemods.verify import probes  # noqa: E402  # only where torch is


def test_saved_bytes():
    w = torch.ones(10, requires_grad=True)
    with probes.SavedBytes() as saved:
        (w * w).sum()
    assert saved.total == 2 * 10 * 4
    with probes.SavedBytes() as guarded, torch.no_grad():
        (w * w).sum()
    assert guarded.total == 0


def test_graph_nodes():
    w = torch.ones(2, requires_grad=True)
    total = w.sum() + w.sum()
    assert probes.graph_nodes(total) == 4  # one addition, two sums, one leaf
    assert probes.graph_nodes([total, w.sum()]) == 5
    assert probes.graph_nodes(total.detach()) == 0
    assert probes.graph_nodes(3.0) == 0


def test_forwards():
    module = nn.Linear(1, 1)
    seen = probes.Forwards(module)
    module(torch.ones(1))
    module.eval()
    with torch.no_grad():
        module(torch.ones(1))
    assert (seen.training, seen.tracked) == ([True, False], [True, False])


def test_versions():
    t = torch.zeros(2)
    before = probes.versions([t])
    t.data.add_(1)
    assert probes.versions([t]) == before
    t.add_(1)
    assert probes.versions([t]) == before + 1


def test_random_position():
    torch.manual_seed(3)
    first = probes.random_position()
    torch.manual_seed(3)
    assert probes.random_position() == first
    torch.manual_seed(3)
    torch.rand(1)
    assert probes.random_position() != first


def test_parameters_and_gradients():
    module = nn.Linear(2, 1, bias=False)
    nn.init.constant_(module.weight, 3.0)
    assert probes.parameters(module) == [[[3.0, 3.0]]]
    assert probes.gradients(module) == [None]
    module(torch.tensor([1.0, 2.0])).sum().backward()
    assert probes.gradients(module) == [[[1.0, 2.0]]]


def test_claiming_cuda(tmp_path):
    path = tmp_path / "w.pt"
    with probes.claiming_cuda():
        torch.save({"w": torch.ones(2)}, path)
    assert torch.equal(torch.load(path, map_location="cpu")["w"], torch.ones(2))
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="deserialize object on a CUDA device"):
            torch.load(path)
    torch.save(torch.ones(2), path)
    assert torch.load(path).device.type == "cpu"


def test_files_of_tensors_and_files_of_modules(tmp_path):
    state, whole = tmp_path / "state.pt", tmp_path / "whole.pt"
    module = nn.Linear(2, 1)
    torch.save({"net": module.state_dict(), "epoch": 3}, state)
    torch.save(module, whole)
    assert probes.classes_in(state) == []
    assert probes.classes_in(whole) == ["torch.nn.modules.linear.Linear"]
    assert [probes.loads_weights_only(path) for path in (state, whole)] == [True, False]


def test_warned():
    with probes.warned() as categories:
        warnings.warn("a", FutureWarning, stacklevel=1)
        warnings.warn("b", UserWarning, stacklevel=1)
    assert categories == ["FutureWarning", "UserWarning"]
    with probes.warned() as nothing:
        pass
    assert nothing == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_peak_memory():
    assert probes.peak_memory(lambda: torch.empty(2**20, dtype=torch.uint8, device="cuda")) == 2**20
