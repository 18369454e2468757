"""The rules and their cases, for tests that run over all of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from torchfix_codemods.cli.prove import project_of
from torchfix_codemods.engine import check, rewrite
from torchfix_codemods.rule import Finding, Rule, Safety
from torchfix_codemods.source import Source
from torchfix_codemods.transforms import CHAIN
from torchfix_codemods.verify.case import Case, cases

if TYPE_CHECKING:
    from torchfix_codemods.model import ProjectView

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures"
RULES = {rule.name: rule for rule in CHAIN}
CASES = [case for rule in CHAIN for case in cases(FIXTURES, rule.name)]
REWRITES = [case for case in CASES if case.is_rewrite]
EXECUTED = [case for case in CASES if case.contract]


def identify(case: Case) -> str:
    return f"{case.rule}/{case.name}"


def source_of(path: Path, data: bytes | None = None) -> Source:
    return Source.decode(str(path.relative_to(ROOT)), path.read_bytes() if data is None else data)


def view_of(path: Path) -> ProjectView:
    """The case's folder is a project of its own: what stands beside the code can be imported."""
    return project_of(path).view(str(path))


def findings_in(rule: Rule, path: Path, data: bytes | None = None) -> tuple[Finding, ...]:
    return check(source_of(path, data), [rule], view_of(path))


def fixed(rule: Rule, path: Path, data: bytes | None = None, minimum: Safety = Safety.UNSAFE) -> bytes:
    source = source_of(path, data)
    return source.encode(rewrite(source, [rule], minimum, view_of(path)).data)
