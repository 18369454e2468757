"""Which environment variables a command gets to see: those on a list, and those that are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KEPT = frozenset(
    # Who and where we are.
    """
    PATH HOME USER LOGNAME SHELL LANG LANGUAGE TZ TERM COLUMNS LINES TMPDIR XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME
    XDG_RUNTIME_DIR DISPLAY MPLBACKEND NO_COLOR
    """
    # Which Python, and how it behaves. PYTHONPYCACHEPREFIX is left out: a shared cache could hold the code of another trial.
    """
    VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYTHONPATH PYTHONHOME PYTHONHASHSEED PYTHONUTF8 PYTHONIOENCODING PYTHONWARNINGS
    PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONNOUSERSITE PYTHONUSERBASE PYTEST_ADDOPTS
    """
    # What native libraries and the downloads of models look at.
    """
    LD_LIBRARY_PATH DYLD_LIBRARY_PATH DYLD_FALLBACK_LIBRARY_PATH CUBLAS_WORKSPACE_CONFIG HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES
    TORCH_HOME HF_HOME HF_HUB_OFFLINE TRANSFORMERS_OFFLINE
    """.split()
)
_KEPT_FAMILIES = ("LC_", "CUDA_", "NVIDIA_", "CUDNN_", "OMP_", "MKL_", "OPENBLAS_", "KMP_")
_SECRET = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY")
"""Words that no variable of a family may hold."""


def environment(source: Mapping[str, str], extra: Iterable[str] = ()) -> dict[str, str]:
    """The variables of `source` that are harmless to show, and those that `extra` names.

    Each of `extra` is `NAME`, to pass a variable on if it is set, or `NAME=VALUE`. Raises `ValueError` for one without a name.
    """
    kept = {name: value for name, value in source.items() if _is_kept(name)}
    for text in extra:
        name, sign, value = text.partition("=")
        if not name or "\0" in text:
            raise ValueError(f"{text!r} names no environment variable: write NAME or NAME=VALUE")
        if sign:
            kept[name] = value
        elif name in source:
            kept[name] = source[name]
    return kept


def _is_kept(name: str) -> bool:
    return name in _KEPT or (name.startswith(_KEPT_FAMILIES) and not any(word in name for word in _SECRET))
