"""Versions of torch that a case is for, as PEP 440 says them: `>=2.6`, or `>=2.6,<3`."""

from __future__ import annotations


def torch_specifier(text: str) -> str:
    """The specifier itself; raises `ValueError` when it is none. An empty one allows everything."""
    if text:
        allows(text, "2.0")
    return text


def allows(specifier: str, version: str) -> bool:
    """Whether a version is one of those; what a build calls itself (`+cpu`) and whether it is a release don't matter."""
    if not specifier:
        return True
    # Few contracts name versions; who has none of them needs no library for it.
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(specifier).contains(version.partition("+")[0], prereleases=True)
    except InvalidSpecifier as error:
        raise ValueError(f'torch is a version specifier such as ">=2.6": {error}') from error
