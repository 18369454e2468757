"""Whether the save of a whole module and its loads can be changed together, in one file or across the project."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .construction import Construction, change_after_making, construction, is_repeatable, is_wrapped, spelled_elsewhere
from .order import runs_before
from .sites import Site, is_literal, is_related, name_of, own_sites, sites_elsewhere

if TYPE_CHECKING:
    from torchfix_codemods.model import FileModel

_CHAIN = frozenset({"to", "cuda", "cpu", "eval", "train"})
_MOVES = ("to(", "cuda(", "cpu(")


@dataclass(frozen=True, slots=True)
class Load:
    """A load that binds one name: `net = torch.load(path).to(device)`."""

    site: Site
    statement: ast.Assign
    chain: tuple[str, ...]
    """The calls after it, as written."""
    location: ast.expr | None
    """The `map_location` that it names."""
    constructor: str = ""
    """The expression that makes the module again, as this file spells it."""

    @property
    def moves(self) -> bool:
        """Whether it moves the module to a device itself."""
        return any(call.startswith(_MOVES) for call in self.chain)


@dataclass(frozen=True, slots=True)
class Pair:
    """A save of a whole module with all loads of its path, and what stands against changing them."""

    save: Site
    loads: tuple[Load, ...] = ()
    made: Construction | None = None
    obstacle: str = ""
    """Why they can't be changed together; empty when they can."""

    def load_of(self, site: Site) -> Load | None:
        """One of the loads, as it is in the text at hand, which may be newer than the one that was paired."""
        known = next((load for load in self.loads if load.site.file.view.path == site.file.view.path), None)
        now = load_at(site)
        return replace(now, constructor=known.constructor) if known and now else None


def pair_of(save: Site) -> Pair | None:
    """The save with its loads; None where a load trusts the file explicitly, which is its author's decision."""
    path = save.path
    own = [site for site in own_sites(save.file, "torch.load") if path is not None and site.path == path]
    elsewhere = sites_elsewhere(save.file, "torch.load", path) if is_literal(path) and path is not None else []
    if any(_is_explicitly_trusted(site.call) for site in [*own, *(elsewhere or [])]):
        return None
    obstacle, made = _obstacle(save, own, elsewhere)
    if obstacle or made is None:
        return Pair(save, obstacle=obstacle)
    loads: list[Load] = []
    for site in [*own, *(elsewhere or [])]:
        load, reason = _paired(save, site, made)
        if load is None:
            return Pair(save, obstacle=reason)
        loads.append(load)
    return Pair(save, tuple(loads), made)


def load_at(site: Site) -> Load | None:
    """A load by its place; None when it is part of a larger expression."""
    chain: list[str] = []
    node: ast.AST = site.call
    while isinstance(attribute := site.file.parent(node), ast.Attribute):
        method = site.file.parent(attribute)
        if not isinstance(method, ast.Call) or attribute.attr not in _CHAIN:
            return None
        chain.append(f"{attribute.attr}({', '.join(site.file.source.code(a) for a in method.args)})")
        node = method
    statement = site.file.parent(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    if not isinstance(statement.targets[0], (ast.Name, ast.Attribute)):
        return None
    keywords = {k.arg: k.value for k in site.call.keywords}
    location = keywords.get("map_location") or (site.call.args[1] if len(site.call.args) > 1 else None)
    return Load(site, statement, tuple(chain), location)


def _is_explicitly_trusted(load: ast.Call) -> bool:
    return any(k.arg == "weights_only" and isinstance(k.value, ast.Constant) and k.value.value is False for k in load.keywords)


def _obstacle(save: Site, own: list[Site], elsewhere: list[Site] | None) -> tuple[str, Construction | None]:
    """What stands against changing the save (empty when nothing does), and how the module was made."""
    file, model = save.file, save.call.args[0]
    if is_wrapped(file, model):
        return "in a wrapper that changes its keys; unwrap it first", None
    if elsewhere is None:
        return "too many files of this project load checkpoints to be sure of all its loads", None
    if not own and not elsewhere:
        where = "in this project" if file.view.path and is_literal(save.path) else "in this file"
        return f"no load of this path is shown {where}", None
    made = construction(file, model)
    if made is None:
        return "how it was made isn't shown in one place", None
    if sum(other.path == save.path for other in own_sites(file, "torch.save")) > 1 or _is_saved_elsewhere(save):
        return "several saves write this path", None
    fact = file.fact(model)
    return change_after_making(file, model, fact.origin if fact else None), made


def _is_saved_elsewhere(save: Site) -> bool:
    return is_literal(save.path) and save.path is not None and sites_elsewhere(save.file, "torch.save", save.path) != []


def _paired(save: Site, site: Site, made: Construction) -> tuple[Load | None, str]:
    """A load that can be changed with its save, or why it can't."""
    load = load_at(site)
    place = "" if site.file is save.file else f" in {name_of(site.file, save.file)}, line {site.call.lineno}"
    if load is None:
        return None, f"a load{place} is part of a larger expression"
    if len(site.call.args) > 2 or any(k.arg not in {"map_location", "weights_only"} for k in site.call.keywords):  # path, location
        return None, f"a load{place} has options of its own"
    if site.file is save.file:
        reason = _own_obstacle(save.file, save.call, site.call, made)
        return (None, reason) if reason else (replace(load, constructor=made.code), "")
    if not is_related(site.file, save.file):
        return None, f"it isn't certain that a load{place} runs in the same folder"
    constructor, reason = spelled_elsewhere(save.file, made, site, place)
    if not reason and made.moves and load.location is None and not load.moves:
        reason = f"the device it was on isn't known{place}"
    return (None, reason) if reason else (replace(load, constructor=constructor), "")


def _own_obstacle(file: FileModel, save: ast.Call, load: ast.Call, made: Construction) -> str:
    if not is_repeatable(file, made.call, save, load):
        return "its constructor arguments aren't known where it is loaded"
    if made.moves and not all(_is_visible(file, move, save, load) for move in made.moves):
        return "the device it was on isn't known where it is loaded"
    return "" if runs_before(file, save, load) else "it isn't certain that the load reads what this run has saved"


def _is_visible(file: FileModel, move: str, save: ast.Call, load: ast.Call) -> bool:
    names = {n.id for n in ast.walk(ast.parse(f"x.{move}")) if isinstance(n, ast.Name)} - {"x"}
    return all(file.names.visible(n, load) is not None and file.names.visible(n, load) is file.names.visible(n, save) for n in names)
