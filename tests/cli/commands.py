"""Run the command line as a user does."""

from __future__ import annotations

import os
import subprocess
import sys

BEFORE = "import torch\nimport torch.nn.functional as F\n\nloss = F.mse_loss(torch.ones(2), torch.zeros(2))\nprint(loss.data[0])\n"
AFTER = BEFORE.replace("loss.data[0]", "loss.item()")
UNSAFE = "import torch\n\n\ndef restore(ema):\n    ema.load_state_dict(torch.load('ema.pt', weights_only=True))\n"
REPORT = "import torch\n\n\ndef features(path):\n    return torch.load(path).mean(0)\n"


def run(*arguments, cwd, stdin=None, environment=()):
    """The finished process; texts as bytes."""
    command = [sys.executable, "-m", "torchfix_codemods", *arguments]
    return subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, check=False, env={**os.environ, **dict(environment)})


def git(*arguments, cwd):
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "core.autocrlf=false"]
    return subprocess.run(["git", *identity, *arguments], cwd=cwd, capture_output=True, check=True)
