"""Run a training script as `python SCRIPT` does, and write down what happens to its models, optimizers and files.

Usage: python observe.py SCRIPT OBSERVATIONS.json
"""

from __future__ import annotations

import hashlib
import json
import runpy
import sys
from pathlib import Path

import torch
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook


class Observer:
    """What a script did, in order, as JSON can hold it."""

    def __init__(self, script):
        self.script = script
        self.forwards = []
        self.graphs = []
        self.steps = []
        self.saved = []
        self._weights = {}

    def watch(self):
        """Set the hooks; they see every module, optimizer and file, and change none."""
        register_module_forward_hook(self.on_forward)
        register_optimizer_step_pre_hook(self.before_step)
        register_optimizer_step_post_hook(self.after_step)
        save = torch.save

        def watched_save(value, *arguments, **keywords):
            state = value.state_dict() if isinstance(value, torch.nn.Module) else value
            self.saved.append({"type": type(value).__name__, "digest": digest(state.values())})
            return save(value, *arguments, **keywords)

        torch.save = watched_save
        sys.setprofile(self.on_return)

    def on_forward(self, module, *_):
        """The models of the script, not the layers they are made of."""
        if type(module).__module__ == "__main__":
            mode = {"model": type(module).__name__, "training": module.training, "gradients": torch.is_grad_enabled()}
            self.forwards.append({"function": self.caller(), **mode})

    def caller(self):
        """The name of the function of the script that is running, outside of `forward`."""
        frame = sys._getframe(2)
        while frame.f_code.co_filename != self.script or frame.f_code.co_name == "forward":
            frame = frame.f_back
        return frame.f_code.co_name

    def on_return(self, frame, event, value):
        if event == "return" and isinstance(value, torch.Tensor) and frame.f_code.co_filename == self.script:
            self.graphs.append({"function": frame.f_code.co_name, "nodes": graph_nodes(value)})

    def before_step(self, optimizer, *_):
        self._weights[optimizer] = digest(parameters(optimizer))

    def after_step(self, optimizer, *_):
        gradients = digest(p.grad for p in parameters(optimizer) if p.grad is not None)
        moved = digest(parameters(optimizer)) != self._weights[optimizer]
        self.steps.append({"optimizer": list(self._weights).index(optimizer), "moved": moved, "gradients": gradients})

    def observations(self):
        return {"forwards": self.forwards, "graphs": self.graphs, "steps": self.steps, "saved": self.saved}


def parameters(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def digest(tensors):
    """Equal for tensors that are equal bit by bit."""
    bits = hashlib.sha256()
    for tensor in tensors:
        bits.update(tensor.detach().numpy().tobytes())
    return bits.hexdigest()


def graph_nodes(tensor):
    """How many nodes of the autograd graph a tensor keeps alive."""
    seen, waiting = set(), [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(following for following, _ in node.next_functions)
    return len(seen)


def main():
    script, target = sys.argv[1:]
    torch.set_num_threads(1)
    observer = Observer(script)
    observer.watch()
    sys.argv = [script]
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
    sys.setprofile(None)
    Path(target).write_text(json.dumps(observer.observations()))


if __name__ == "__main__":
    main()
