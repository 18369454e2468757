"""Rule `dataloader-main-guard`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torchfix_codemods.edits import WrapInIf
from torchfix_codemods.effects import RAISES_LESS
from torchfix_codemods.model.index import FUNCTIONS
from torchfix_codemods.model.training import own_nodes
from torchfix_codemods.rule import Category, Rule, Safety

from .loaders import has_no_workers, iterations
from .worker_code import cannot_be_sent, needed_by_workers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchfix_codemods.model import FileModel
    from torchfix_codemods.model.index import Function
    from torchfix_codemods.rule import Finding

_CELLS = re.compile(rb"^[ \t]*(# ?%%|# ?In ?\[|#{20,}\s*$)", re.MULTILINE)
"""What separates the cells of a notebook that is kept as a script: an `if` can't hold several."""


class DataloaderMainGuard(Rule):
    """Script that runs a loader with workers at its top level, without a main guard.

    ## Why
    Where workers are spawned (Windows, macOS, and Linux since Python 3.14) each of them imports the script: without
    `if __name__ == "__main__":` it starts the loop again, and the loader fails.

    ## Example
    ```python
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.arange(4.0)), num_workers=1)
    for (x,) in loader:
        print(x)
    ```
    ```python
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    loader = DataLoader(TensorDataset(torch.arange(4.0)), num_workers=1)
    if __name__ == "__main__":
        for (x,) in loader:
            print(x)
    ```

    ## Safety
    Unsafe: an import of the file doesn't run the loop any more, which is the intent. From the first statement that runs
    a loader to the end of the file, so that everything before stays visible to workers. Reported where workers need
    names that would move under the guard; kept for files that the project imports.

    ## References
    https://docs.pytorch.org/docs/stable/notes/windows.html#multiprocessing-error-without-if-clause-protection
    """

    name = "dataloader-main-guard"
    category = Category.DATALOADING
    safety = Safety.UNSAFE
    effects = (RAISES_LESS,)
    needles = (b"torch", b"DataLoader")

    def find(self, file: FileModel) -> Iterator[Finding]:
        """Yield the first statement at top level that runs a loader with workers."""
        if file.source.path.endswith("__init__.py") or file.roles.in_tests or _has_guard(file):
            return
        places = [(node, loader) for node, loader in iterations(file) if _may_have_workers(file, loader)]
        running = _running(file, [node for node, _ in places])
        body = file.tree.body
        start = next((i for i, s in enumerate(body) if _runs(file, s, [node for node, _ in places], running)), None)
        if start is None or _is_imported(file):
            return
        message = 'workers that are spawned run this again: put it under `if __name__ == "__main__":`'
        needed = needed_by_workers(file, body[start:])
        if _CELLS.search(file.source.data):
            yield self.finding(file, body[start], f"{message} (not changed, since it would cut the cells of this script)")
        elif needed:
            yield self.finding(file, body[start], f"{message}, and what workers need ({', '.join(sorted(needed))}) above")
        elif any(cannot_be_sent(file, loader) for _, loader in places):
            yield self.finding(file, body[start], f"{message}, and give workers functions of the top level in place of lambdas")
        else:
            span = file.source.span
            yield self.finding(file, body[start], message, WrapInIf(span(body[start]), span(body[-1]), '__name__ == "__main__"'))


def _has_guard(file: FileModel) -> bool:
    return any(isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test) for statement in file.tree.body)


def _may_have_workers(file: FileModel, loader: ast.Call) -> bool:
    """Whether num_workers is given, in the call or in a literal dictionary that it unpacks, and isn't sure to be 0."""
    unpacked = [value for keyword in loader.keywords if keyword.arg is None for value in file.origins.of(keyword.value)]
    if any("num_workers" in ast.unparse(value) for value in unpacked):
        return not any("'num_workers': 0" in ast.unparse(value) or "num_workers=0" in ast.unparse(value) for value in unpacked)
    return not has_no_workers(file, loader)


def _running(file: FileModel, places: list[ast.AST]) -> set[ast.AST]:
    """The functions that run a loader, themselves or through others of the file."""
    running: set[ast.AST] = {function for place in places if (function := file.flow.function(place)) is not None}
    while True:
        callers = {f for function in running if isinstance(function, FUNCTIONS) for f in _callers(file, function)}
        if callers <= running:
            return running
        running |= callers


def _callers(file: FileModel, function: Function) -> Iterator[ast.AST]:
    for call in file.functions.calls_to(function):
        caller = file.flow.function(call)
        if caller is not None:
            yield caller


def _runs(file: FileModel, statement: ast.stmt, places: list[ast.AST], running: set[ast.AST]) -> bool:
    """Whether a statement at top level runs a loader when the file is imported."""
    for node in own_nodes(statement):
        if node in places or any(target in running for target in (file.functions.targets(node) if isinstance(node, ast.Call) else ())):
            return True
    return False


def _is_imported(file: FileModel) -> bool:
    """Whether another file of the project imports this one."""
    project, path = file.view.project, file.view.path
    if not path:
        return False
    stem = path.rpartition("/")[2].removesuffix(".py")
    others = project.files.importers(project.files.root(path), frozenset({stem}))
    return any(_imports(file, other) for other in others if other != path)


def _imports(file: FileModel, other: str) -> bool:
    seen = file.view.project.outline(other)
    targets = {target for names in seen.imports.values() for target in names} | set(seen.stars)
    found = (file.view.project.resolve(other, target) for target in targets)
    return any(symbol is not None and symbol.path == file.view.path for symbol in found)
