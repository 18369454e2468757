"""Data sets that are made, not downloaded: they stand in for MNIST, for a distribution of points, and for a text."""
import math

import torch
from torch.utils.data import DataLoader, TensorDataset

TEXT = "the quick brown fox jumps over the lazy dog. " * 40
CHARACTERS = sorted(set(TEXT))


def images(n, seed):
    """Noisy images of 8 by 8 pixels: a bright row (class 0), a bright column (1), or a bright diagonal (2)."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(n, 1, 8, 8, generator=generator)
    y = torch.randint(0, 3, (n,), generator=generator)
    for i in range(n):
        k = i % 8
        if y[i] == 0:
            x[i, 0, k] += 1
        elif y[i] == 1:
            x[i, 0, :, k] += 1
        else:
            x[i, 0] += torch.eye(8)
    return TensorDataset(x, y)


def image_loaders(batch_size=32):
    train = DataLoader(images(512, seed=1), batch_size=batch_size, shuffle=True)
    test = DataLoader(images(128, seed=2), batch_size=batch_size)
    return train, test


def ring(n):
    """Points on a circle of radius 2."""
    angle = torch.rand(n) * 2 * math.pi
    return torch.stack([angle.cos(), angle.sin()], 1) * 2


def encoded_text():
    return torch.tensor([CHARACTERS.index(c) for c in TEXT])
