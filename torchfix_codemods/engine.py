"""Check and rewrite one file: pure functions, text in, values out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .history import History
from .model import ALONE, FileModel, ProjectView
from .rule import Finding, Safety
from .source import syntax_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .rule import Rule
    from .source import Source

PASS_LIMIT = 10
"""Passes after which a file counts as unstable; chains of fixes that need each other are far shorter."""

_WITHOUT_PARTNER = "the other files that it has to be changed with aren't part of this run, or can't be changed"


class Group(NamedTuple):
    """What the fixes of a rule at one place of the original file are known by, in all passes and whatever else is fixed."""

    rule: str
    offset: int
    """Of the first byte, in the original text."""


class Applied(NamedTuple):
    """A fix, and the pass that applied it, from 0: what a fix builds on was applied before."""

    group: Group
    turn: int


def _any(_: Group) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A file after all fixes that were allowed."""

    before: Source
    data: bytes
    """The new text in UTF-8; equal to `before.data` when nothing was fixed."""
    fixed: tuple[Finding, ...]
    """What was fixed; positions are those of the pass that did it."""
    applied: tuple[Applied, ...]
    """For each that was fixed, what it is known by and when it was applied."""
    remaining: tuple[Finding, ...]
    """What is still there, with positions in the new text."""
    refused: tuple[tuple[Finding, str], ...]
    """Fixes that could not be applied without damage, and why; they are among the remaining too."""
    passes: int


class Unstable(Exception):
    """The fixes of a file never come to rest; nothing of it may be written."""


def check(source: Source, rules: Sequence[Rule], view: ProjectView = ALONE) -> tuple[Finding, ...]:
    """The findings of one file, by place; raises `SourceError` when the file is not Python 3.

    `view` shows the project around it; without one, nothing is known of what the file imports.
    """
    return _find(FileModel(source, view=view), rules)


def _find(file: FileModel, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    present = [rule for rule in rules if rule.may_find(file.source.data)]
    findings = [finding for rule in present for finding in rule.find(file)]
    return tuple(sorted(set(findings), key=lambda finding: (finding.span, finding.rule)))


def rewrite(
    source: Source,
    rules: Sequence[Rule],
    minimum: Safety,
    view: ProjectView = ALONE,
    dropped: frozenset[str] = frozenset(),
    allows: Callable[[Group], bool] = _any,
) -> Rewritten:
    """Apply the fixes of at least `minimum` safety until none is left; raises `SourceError`, and `Unstable`.

    `dropped` holds the keys of fixes that other files share, and have not applied; `allows` tells which may be applied.
    """
    order = {rule.name: place for place, rule in enumerate(rules)}
    current, fixed, refused = source, list[tuple[Finding, Applied]](), dict[tuple[str, str], str]()
    history = History()
    for passes in range(PASS_LIMIT + 1):
        file = FileModel(current, view=view)
        findings = _find(file, rules)
        refused |= {_key(current, f): _WITHOUT_PARTNER for f in findings if f.partners and f.partners.key in dropped}
        wanted = [f for f in findings if f.edits and f.safety >= minimum and _key(current, f) not in refused]
        groups = {f: Group(f.rule, history.original(f.span.start)) for f in wanted}
        todo = [f for f in wanted if allows(groups[f])]
        if not todo:
            return _result(source, current, fixed, findings, refused, passes)
        todo.sort(key=lambda finding: (order[finding.rule], finding.span))
        current, applied, problems = _apply(file, todo)
        history.add(file.source.data, current.data)
        fixed += [(finding, Applied(groups[finding], passes)) for finding in applied]
        refused |= problems
    message = f"{source.path}: the fixes do not come to rest after {PASS_LIMIT} passes; nothing was written"
    raise Unstable(message)


def _apply(file: FileModel, todo: list[Finding]) -> tuple[Source, list[Finding], Mapping[tuple[str, str], str]]:
    """One pass: the new text, what was applied, and what was refused with its reason."""
    from .edits.apply import apply_groups  # libcst loads here, and only for a file that changes

    result = apply_groups(file.source, file.tree, [finding.edits for finding in todo])
    problems = {_key(file.source, todo[i]): reason for i, reason in result.refused.items()}
    applied = [todo[i] for i in result.applied]
    changed = file.source.replace(result.data)
    unbound = _newly_undefined(file, changed)
    if unbound:
        # Which of the fixes is to blame isn't known, and none of this pass may stay.
        reason = f"would leave {', '.join(sorted(unbound))} undefined"
        return file.source, [], problems | {_key(file.source, finding): reason for finding in applied}
    return changed, applied, problems


def _newly_undefined(file: FileModel, changed: Source) -> set[str]:
    return FileModel(changed, syntax_tree(changed.text)).names.undefined() - file.names.undefined()


def _key(source: Source, finding: Finding) -> tuple[str, str]:
    """What a refused finding is recognised by in later passes: its rule, line text and message, wherever it moved."""
    return finding.rule, f"{source.line(finding.position.line).strip()}|{finding.message}"


def _result(
    before: Source,
    after: Source,
    fixed: list[tuple[Finding, Applied]],
    findings: tuple[Finding, ...],
    refused: Mapping[tuple[str, str], str],
    passes: int,
) -> Rewritten:
    kept = tuple((finding, refused[_key(after, finding)]) for finding in findings if _key(after, finding) in refused)
    done, applied = tuple(finding for finding, _ in fixed), tuple(how for _, how in fixed)
    return Rewritten(before, after.data, done, applied, findings, kept, passes)
