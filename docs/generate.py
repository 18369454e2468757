"""Writes what is said about rules from the rules themselves and from executing their fixtures.

Usage: python docs/generate.py [RULE…] [--again] [--check]

For the rules named (all, when none is): `transforms/<category>/measured/<rule>.json`, the contract table that `explain`
prints, and `docs/rules/<rule>.md`. For the catalogue: `docs/rules/README.md`, the list of rules in `README.md`, the picture
`docs/diff.svg`, and `docs/verified.md`, from what `verify --record docs/verified.json` has kept of its runs.
Only cases that changed since they were measured are executed; with `--again` all are. On a machine with a GPU, what was
not verified without one is filled in. `--check` writes and executes nothing, lists what is out of date, and exits with 1
if anything is.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchfix_codemods.catalogue import Choice
from torchfix_codemods.measured import Measured, dumps, measured, place
from torchfix_codemods.output.diff import unified_diff
from torchfix_codemods.output.page import index, names, page
from torchfix_codemods.output.picture import terminal_picture
from torchfix_codemods.output.verified import verified
from torchfix_codemods.recorded import Executable, loads
from torchfix_codemods.rule import Safety
from torchfix_codemods.transforms import CHAIN
from torchfix_codemods.verify.case import cases, digest
from torchfix_codemods.verify.measure import Breach, counted, measure
from torchfix_codemods.workspace.tasks import RewriteTask, Rewrote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchfix_codemods.rule import Rule

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
PAGES = ROOT / "docs" / "rules"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "diff.svg"
PICTURED = "examples/train_gan.py"
RECORD = ROOT / "docs" / "verified.json"
VERIFIED = ROOT / "docs" / "verified.md"
_LIST = re.compile(r"(?<=<!-- rules: written by docs/generate.py -->\n).*?(?=<!-- end of rules -->)", re.DOTALL)


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", metavar="RULE", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    unknown = set(options.rules) - {rule.name for rule in CHAIN}
    if unknown:
        parser.error(f"no such rule: {', '.join(sorted(unknown))}")
    chosen = [rule for rule in CHAIN if rule.name in options.rules or not options.rules]
    if options.check:
        stale = [*outdated(chosen), *(path for path, text in documents(chosen).items() if _text(path) != text), *orphans()]
        print("".join(f"{path.relative_to(ROOT)} is out of date: run python docs/generate.py\n" for path in stale), end="")
        return 1 if stale else 0
    broken = [problem for rule in chosen if (problem := remeasure(rule, options.again))]
    for path, text in documents(chosen).items():
        _write(path, text)
    for path in orphans():
        path.unlink()
    print("".join(f"{problem}\n" for problem in broken), end="", file=sys.stderr)
    return 1 if broken else 0


def remeasure(rule: Rule, again: bool) -> str:
    """Execute what changed, and keep the table; the breach that prevents it."""
    try:
        _write(place(rule), dumps(measure(cases(FIXTURES, rule.name), measured(rule), again)))
    except Breach as breach:
        return str(breach)
    return ""


def outdated(rules: Sequence[Rule]) -> Iterator[Path]:
    """The tables whose cases have changed since."""
    for rule in rules:
        table, found = measured(rule) or Measured(), cases(FIXTURES, rule.name)
        if counted(found, {case.name: digest(case) for case in found if case.contract}, table.rows) != table:
            yield place(rule)


def documents(rules: Sequence[Rule]) -> dict[Path, str]:
    """Every page and its text."""
    pages = {PAGES / f"{rule.name}.md": page(rule, measured(rule)) for rule in rules}
    by_category = sorted(CHAIN, key=lambda rule: (rule.category.value, rule.name))
    listed = "\n".join(names(by_category)) + "\n"
    record = loads(_text(RECORD)) if RECORD.exists() else []
    catalogue = {PAGES / "README.md": index(by_category), VERIFIED: verified(record, executables())}
    return {**pages, **catalogue, PICTURE: picture(), README: _LIST.sub(lambda _: listed, _text(README))}


def picture() -> str:
    """What `diff` shows of an example."""
    path = ROOT / PICTURED
    result = RewriteTask(Choice(), Safety.UNSAFE)(str(path))
    assert isinstance(result, Rewrote)
    return terminal_picture(f"torchmod diff --unsafe-fixes {PICTURED}", unified_diff(str(path), result.before, result.after, str(ROOT)))


def executables() -> list[Executable]:
    """Every case with a contract, on every device that it names."""
    executed = [case for rule in CHAIN for case in cases(FIXTURES, rule.name)]
    return [
        Executable(device, case.rule, case.name, digest(case)) for case in executed if case.contract for device in case.contract.devices
    ]


def orphans() -> list[Path]:
    """Pages and tables of rules that are gone."""
    known = {PAGES / "README.md", *(PAGES / f"{rule.name}.md" for rule in CHAIN), *(place(rule) for rule in CHAIN)}
    return [path for path in (*PAGES.glob("*.md"), *ROOT.glob("transforms/*/measured/*.json")) if path not in known]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _write(path: Path, text: str) -> None:
    if _text(path) != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(ROOT))


if __name__ == "__main__":
    sys.exit(main())
