"""`python -m torchfix_codemods`."""

from __future__ import annotations

from .cli.entry import main

if __name__ == "__main__":
    main()
