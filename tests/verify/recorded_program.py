"""A program for the tests of the recorder: does a little of all that is recorded. Not a test itself."""

import os
import sys
import warnings

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.fc(x))


def train(model, optimizer, clear):
    model.train()
    for _ in range(4):
        loss = nn.MSELoss()(model(torch.ones(2, 3)), torch.zeros(2, 2))
        if clear == "before the backward":
            optimizer.zero_grad(set_to_none=False)
        elif clear == "by hand":
            for parameter in model.parameters():
                parameter.grad = None
        loss.backward()
        if clear == "too late":
            optimizer.zero_grad()
        optimizer.step()


def cleared(model, optimizer):
    train(model, optimizer, "before the backward")


def cleared_by_hand(model, optimizer):
    train(model, optimizer, "by hand")


def test(model):
    model.eval()
    with torch.no_grad():
        for _ in range(3):
            model(torch.ones(1, 3))


def kept(model):
    total = 0
    for _ in range(5):
        total += model(torch.ones(1, 3)).sum()
    return total


def caught():
    try:
        [][1]
    except IndexError:
        sys.stdout.flush()
    for _ in iter([1]):
        warnings.warn("careful", UserWarning, stacklevel=1)


def child():
    model = Net()
    model(torch.ones(1, 3))


def main():
    model = Net()
    for run, clear in ((train, "never"), (cleared, ""), (cleared_by_hand, "")):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model.zero_grad()
        run(model, optimizer, *filter(None, [clear]))
    model.zero_grad()
    train(model, torch.optim.Adam(model.parameters()), "too late")
    test(model)
    total = kept(model)
    torch.save(model, "model.pt")
    torch.save({"state": model.state_dict(), "epoch": 1}, "state.pt")
    torch.load("state.pt", map_location="cpu", weights_only=True)
    caught()
    for method in ("fork", "spawn"):
        process = torch.multiprocessing.get_context(method).Process(target=child)
        process.start()
        process.join()
    print(total.shape, float(torch.rand(1)), os.environ["OWN_SITE"])
    sys.stdout.flush()
    raise KeyError("the end")


if __name__ == "__main__":
    main()
