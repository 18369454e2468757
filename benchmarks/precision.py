"""A random sample of what the rules do to real code, for people to judge.

Usage: python benchmarks/precision.py FOLDER… [--count N] [--reports N] [--seed N] [--select RULE]… [--output FILE]

Each FOLDER is a repository. The whole chain (or the rules selected; optional rules only by their name) finds what it
would fix in each; N safe and N unsafe fixes are drawn, spread over rules and, within a rule, over repositories: the same
for the same seed and files. Each is applied alone and written to FILE as a diff with eight lines around it, numbered,
with a line for the verdict. Fixes that only become possible after others (later passes) are not drawn. What is printed
counts all findings by rule. A fix that the tool itself refuses to apply is told and replaced by another.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from torchfix_codemods.catalogue import Choice, UnknownRule
from torchfix_codemods.edits.apply import apply_groups
from torchfix_codemods.output.table import print_table
from torchfix_codemods.rule import Finding, Safety
from torchfix_codemods.source import Source, syntax_tree
from torchfix_codemods.workspace.discover import MissingPath, discover
from torchfix_codemods.workspace.run import Failure, default_jobs, run
from torchfix_codemods.workspace.surroundings import Surroundings
from torchfix_codemods.workspace.tasks import CheckTask

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

CONTEXT = 8
"""Lines shown before and after a change: enough to see where the names come from, mostly."""


@dataclass(frozen=True, slots=True)
class Found:
    """One finding, and where it is."""

    repository: str
    path: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Corpus:
    """Everything that the rules find in some repositories."""

    found: tuple[Found, ...]
    repositories: int
    files: int
    failures: tuple[Failure, ...]


def main() -> None:
    """Count, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="FOLDER", nargs="+")
    parser.add_argument("--count", type=int, default=30, help="fixes of each safety (default %(default)s)")
    parser.add_argument("--reports", type=int, default=0, help="findings without a fix (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--select", action="append", default=[], metavar="RULE", help="rule or category; may be given again")
    parser.add_argument("--output", type=Path, default=Path("precision.txt"), help="default %(default)s")
    options = parser.parse_args()
    try:
        corpus = read(options.folders, Choice(tuple(options.select)))
    except (MissingPath, UnknownRule) as error:
        parser.error(str(error))
    tell(corpus)
    generator = random.Random(options.seed)
    wanted = {Safety.SAFE: options.count, Safety.UNSAFE: options.count, Safety.REPORT: options.reports}
    entries = [entry for safety, count in wanted.items() for entry in drawn(corpus, safety, count, generator)]
    options.output.write_text("\n".join(numbered(entries)), encoding="utf-8")
    print(f"{len(entries)} of them are in {options.output}, to be judged.")


def read(folders: Sequence[str], rules: Choice) -> Corpus:
    """Check every file of every folder."""
    rules()
    found, failures, files = list[Found](), list[Failure](), 0
    for folder in folders:
        paths = discover([folder])
        files += len(paths)
        for result in run(CheckTask(rules, Surroundings((folder,))), paths, default_jobs()):
            if isinstance(result, Failure):
                failures.append(result)
            else:
                found += (Found(os.path.basename(os.path.normpath(folder)), result.path, located.finding) for located in result.findings)
    return Corpus(tuple(found), len(folders), files, tuple(failures))


def tell(corpus: Corpus) -> None:
    """Print what was found, by rule and safety."""
    counts = Counter((item.finding.rule, item.finding.safety) for item in corpus.found)
    where = {rule: {item.repository for item in corpus.found if item.finding.rule == rule} for rule, _ in counts}
    levels = sorted(Safety, reverse=True)
    rows = [(rule, *(str(counts[rule, level]) for level in levels), str(len(where[rule]))) for rule in sorted(where)]
    print_table(("rule", *(level.label for level in levels), "repositories"), rows)
    for failure in corpus.failures:
        if failure.ours:
            print(f"{failure.path}: {failure.reason}", file=sys.stderr)
    read_well = corpus.files - len(corpus.failures)
    print(f"{len(corpus.found)} findings in {read_well} of {corpus.files} files of {corpus.repositories} repositories.")


def drawn(corpus: Corpus, safety: Safety, count: int, generator: random.Random) -> Iterator[str]:
    """So many entries of one safety; each is made only when it is wanted."""
    candidates = spread([item for item in corpus.found if item.finding.safety is safety], generator)
    entries = (text for item in candidates if (text := entry(item)))
    return itertools.islice(entries, count)


def spread(items: Sequence[Found], generator: random.Random) -> Iterator[Found]:
    """In random order, but taking rules in turn, and within each rule the repositories in turn."""
    by_rule: dict[str, dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for item in generator.sample(items, len(items)):
        by_rule[item.finding.rule][item.repository].append(item)
    return in_turn([list(in_turn(repositories.values())) for repositories in by_rule.values()])


def in_turn(lists: Iterable[Sequence[Found]]) -> Iterator[Found]:
    """The first of each, then the second of each, …"""
    return (item for row in itertools.zip_longest(*lists) for item in row if item is not None)


def entry(item: Found) -> str:
    """One finding as people judge it; empty when the tool itself refuses the fix."""
    finding = item.finding
    source = Source.decode(item.path, Path(item.path).read_bytes())
    if finding.edits:
        applied = apply_groups(source, syntax_tree(source.text), [finding.edits])
        if applied.refused:
            print(f"{item.path}:{finding.position.line}: {finding.rule} is not applied: {applied.refused[0]}", file=sys.stderr)
            return ""
        shown = difference(source.text, applied.data.decode())
    else:
        shown = surroundings(source.text, finding.position.line)
    partners = [f"together with: {path}" for path in finding.partners.paths] if finding.partners else []
    head = [f"{finding.rule} ({finding.safety.label})", f"{item.path}:{finding.position.line}", finding.message, *partners]
    return "\n".join([*head, "verdict: ", "", *shown, ""])


def difference(before: str, after: str) -> list[str]:
    """The lines of a diff, without its file names."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=CONTEXT, lineterm="")
    return list(lines)[2:]


def surroundings(text: str, line: int) -> list[str]:
    """The line of a report, marked, and those around it."""
    lines = text.splitlines()
    first = max(0, line - 1 - CONTEXT)
    return [f"{'>' if number == line else ' '}{shown}" for number, shown in enumerate(lines[first : line + CONTEXT], first + 1)]


def numbered(entries: Sequence[str]) -> Iterator[str]:
    """The entries under their numbers."""
    for number, text in enumerate(entries, 1):
        yield f"{'=' * 30} {number} {'=' * 30}\n{text}"


if __name__ == "__main__":
    main()
