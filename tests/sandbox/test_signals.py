"""Signals wait while something is in the making, or are exceptions."""

from __future__ import annotations

import signal

import pytest

from torchfix_codemods.sandbox import deferred, interrupting


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_waits_until_the_block_is_done(number):
    done = []

    def work():
        with interrupting():
            with deferred():
                signal.raise_signal(number)
                signal.raise_signal(number)
                done.append("all")
            done.append("more")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all"]


def test_a_signal_is_not_lost_when_the_block_fails():
    def fail():
        with deferred():
            signal.raise_signal(signal.SIGINT)
            raise ValueError

    with pytest.raises(KeyboardInterrupt):
        fail()


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupting():
            signal.raise_signal(signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
