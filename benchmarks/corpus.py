"""A corpus for timing: training scripts put together from parts, the same every time. A folder of real code says more."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SEED = 7

HEADER = '''"""Experiment {number}."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

'''

MODEL = '''
class Net{number}(nn.Module):
    """A stack of convolutions."""

    def __init__(self, channels={size}, classes=10):
        super().__init__()
{layers}        self.head = nn.Linear(channels, classes)

    def forward(self, x):
{calls}        return self.head(x.mean((2, 3)))

'''

LAYER = "        self.conv{layer} = nn.Sequential(nn.Conv2d({source}, channels, 3, padding=1), nn.BatchNorm2d(channels))\n"
CALL = "        x = F.relu(self.conv{layer}(x))\n"

PARTS = (
    """
def train_epoch(model, loader, optimizer, device):
    model.train()
    total = 0.0
    for step, (images, labels) in enumerate(loader):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % {size} == 0:
            print("step %d loss %.4f" % (step, loss.item()))
    return total / len(loader)

""",
    """
@torch.no_grad()
def accuracy(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        correct += (model(images.to(device)).argmax(1) == labels.to(device)).sum().item()
    return correct / len(loader.dataset)

""",
    """
def evaluate(loader, device):
    model = Net{number}().to(device)
    model.load_state_dict(torch.load("checkpoint{number}.pt"))
    model.eval()
    losses = []
    for images, labels in loader:
        output = model(images.to(device))
        losses.append(F.cross_entropy(output, labels.to(device)).item())
    return sum(losses) / len(losses)

""",
    '''
def adjust_learning_rate(optimizer, epoch, base=0.1):
    """Divide the rate by 10 every {size} epochs."""
    rate = base * (0.1 ** (epoch // {size}))
    for group in optimizer.param_groups:
        group["lr"] = rate
    return rate

''',
    """
def clip_weights(bound=0.0{size}):
    model = Net{number}()
    for p in model.parameters():
        p.data.clamp_(-bound, bound)
    return model

""",
    '''
class Averages(object):
    """Running means by name."""

    def __init__(self):
        self.totals, self.counts = {{}}, {{}}

    def update(self, name, value, n=1):
        self.totals[name] = self.totals.get(name, 0.0) + value * n
        self.counts[name] = self.counts.get(name, 0) + n

    def mean(self, name):
        return self.totals[name] / max(1, self.counts[name])

''',
    """
def parse_arguments():
    parser = argparse.ArgumentParser(description="Experiment {number}")
    parser.add_argument("--epochs", type=int, default={size})
    parser.add_argument("--batch-size", type=int, default=64, help="images in a batch")
    parser.add_argument("--lr", type=float, default=0.1, help="first learning rate")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser.parse_args()

""",
)


def write(folder: Path, files: int) -> None:
    """Write that many Python files into a folder that exists."""
    generator = random.Random(SEED)
    for number in range(files):
        (folder / f"experiment{number:04}.py").write_text(script(number, generator), encoding="utf-8")


def script(number: int, generator: random.Random) -> str:
    """One training script: a model, and some of the parts around it, in the order of the draw."""
    drawn = generator.sample(PARTS, k=generator.randint(3, len(PARTS)))
    parts = [part.format(number=number, size=generator.randint(5, 50)) for part in drawn]
    return HEADER.format(number=number) + model(number, generator.randint(2, 12), generator) + "".join(parts)


def model(number: int, depth: int, generator: random.Random) -> str:
    """A module class with so many layers."""
    layers = "".join(LAYER.format(layer=layer, source="channels" if layer else "3") for layer in range(depth))
    calls = "".join(CALL.format(layer=layer) for layer in range(depth))
    return MODEL.format(number=number, size=generator.choice((16, 32, 64)), layers=layers, calls=calls)
