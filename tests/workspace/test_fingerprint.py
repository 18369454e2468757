"""Fingerprints: the same while lines and layout move, different for different places."""

from torchfix_codemods.catalogue import all_rules
from torchfix_codemods.workspace.tasks import CheckTask

PLAIN = b"""import torch


class Trainer:
    def fit(self):
        a = torch.load("a.pt")
        b = torch.load("a.pt")
        return a, b

    def resume(self):
        return torch.load("a.pt")
"""


def prints(text):
    checked = CheckTask(all_rules).text("trainer.py", text)
    return [(located.finding.rule, located.finding.scope, located.fingerprint) for located in checked.findings]


def test_each_finding_has_its_own():
    found = prints(PLAIN)
    assert [scope for rule, scope, _ in found if rule == "torch-load-map-location"] == ["Trainer.fit", "Trainer.fit", "Trainer.resume"]
    assert len({mark for *_, mark in found}) == len(found)


def test_lines_and_layout_do_not_count():
    moved = b"import os\n\n# a comment\n" + PLAIN.replace(b'b = torch.load("a.pt")', b"b = torch.load(\n            'a.pt',\n        )")
    assert prints(moved) == prints(PLAIN)


def test_other_code_and_other_places_count():
    before = {mark for *_, mark in prints(PLAIN)}
    assert before.isdisjoint(mark for *_, mark in prints(PLAIN.replace(b"a.pt", b"b.pt").replace(b"class Trainer", b"class Tester")))
    assert before.isdisjoint(mark for *_, mark in prints(PLAIN.replace(b"Trainer", b"Tester")))
