"""Finds the rules: the catalogue that comes with the tool, and rule packs installed beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from .rule import Category

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .rule import Rule

GROUP = "torchfix_codemods.transforms"
"""The entry point group of rule packs: each entry names a sequence of rules."""


class UnknownRule(Exception):
    """A name that is neither a rule nor a category; the text suggests what was meant."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The rules that a user asks for; loaded when they are first needed, once in each process."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __call__(self) -> tuple[Rule, ...]:
        """The rules; raises `UnknownRule`."""
        return _chosen(self.select, self.ignore)


@cache
def _chosen(select: tuple[str, ...], ignore: tuple[str, ...]) -> tuple[Rule, ...]:
    return chosen(all_rules(), select, ignore)


def all_rules(packs: bool = True) -> tuple[Rule, ...]:
    """Every rule in order of application: our own first, then those of other packs."""
    from .transforms import CHAIN

    return (*CHAIN, *_packs()) if packs else tuple(CHAIN)


def _packs() -> list[Rule]:
    """The rules of other packages. Their metadata is only read where some package declares the group at all."""
    if not _is_declared():
        return []
    from importlib.metadata import entry_points

    found = [point for point in entry_points(group=GROUP) if point.value != "torchfix_codemods.transforms:CHAIN"]
    return [rule for point in sorted(found, key=lambda point: point.name) for rule in point.load()]


def _is_declared() -> bool:
    """Whether an installed package other than this one declares the group; reading plain files is much cheaper than metadata."""
    import os
    import sys

    for folder in dict.fromkeys(sys.path):
        if not folder.endswith(("site-packages", "dist-packages")) or not os.path.isdir(folder):
            continue
        for name in os.listdir(folder):
            if name.endswith(".dist-info") and not name.startswith("torchfix_codemods-"):
                path = os.path.join(folder, name, "entry_points.txt")
                if os.path.exists(path) and _mentions_group(path):
                    return True
    return False


def _mentions_group(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return f"[{GROUP}]".encode() in file.read()
    except OSError:
        return False


def chosen(rules: Sequence[Rule], select: Iterable[str], ignore: Iterable[str]) -> tuple[Rule, ...]:
    """The rules that names, categories or ALL select, without those ignored; raises `UnknownRule`.

    Optional rules have to be selected by name.
    """
    wanted = _named(rules, list(select) or ["ALL"])
    unwanted = _named(rules, list(ignore))
    return tuple(rule for rule in rules if rule.name in wanted - unwanted and (not rule.optional or rule.name in select))


def _named(rules: Sequence[Rule], names: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in names:
        matches = {rule.name for rule in rules if name in {"ALL", rule.name, rule.category.value}}
        if not matches and name not in {category.value for category in Category}:
            raise UnknownRule(_suggestion(rules, name))
        found |= matches
    return found


def find(rules: Sequence[Rule], name: str) -> Rule:
    """The rule of this name; raises `UnknownRule`."""
    for rule in rules:
        if rule.name == name:
            return rule
    raise UnknownRule(_suggestion(rules, name))


def _suggestion(rules: Sequence[Rule], name: str) -> str:
    known = [rule.name for rule in rules] + [category.value for category in Category] + ["ALL"]
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else "`torchfix-codemods rules` lists them"
    return f"unknown rule or category {name!r}; {hint}"
