"""Signals as a terminal leaves them, also where the tests run under `nohup`."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(autouse=True)
def hangups_end_programs():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)
