"""Commands see harmless variables, and those that are named."""

from __future__ import annotations

import pytest

from torchfix_codemods.sandbox import environment

USERS = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "CUDA_VISIBLE_DEVICES": "0",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": "src",
    "GITHUB_TOKEN": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "HTTPS_PROXY": "http://user:secret@proxy",
    "CUDA_TOKEN": "secret",
    "WANDB_API_KEY": "secret",
    "SSH_AUTH_SOCK": "/tmp/agent",
    "PYTHONPYCACHEPREFIX": "/tmp/cache",
    "DATA": "/data",
}


def test_only_what_is_on_the_list_is_kept():
    assert set(environment(USERS)) == {"PATH", "LC_ALL", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONPATH"}


def test_what_is_named_is_passed_on_or_set():
    seen = environment(USERS, ["GITHUB_TOKEN", "DATA=/other=1", "EMPTY=", "UNSET"])
    assert seen["GITHUB_TOKEN"] == "secret"
    assert (seen["DATA"], seen["EMPTY"]) == ("/other=1", "")
    assert "UNSET" not in seen


@pytest.mark.parametrize("text", ["", "=value", "A=\0"])
def test_a_variable_without_a_name_is_refused(text):
    with pytest.raises(ValueError, match="write NAME or NAME=VALUE"):
        environment({}, [text])
