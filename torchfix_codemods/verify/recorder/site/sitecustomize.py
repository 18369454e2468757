"""Read at the start of every Python that a recorded command starts: loads the recorder, then the user's own sitecustomize."""

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

NAME = "torchfix_recorder"
HERE = os.path.dirname(os.path.abspath(__file__))


def start_recorder() -> None:
    package = os.path.dirname(HERE)
    spec = importlib.util.spec_from_file_location(NAME, os.path.join(package, "__init__.py"), submodule_search_locations=[package])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)
    importlib.import_module(f"{NAME}.start").start()


def run_users_own() -> None:
    others = [folder for folder in sys.path if os.path.abspath(folder or ".") != HERE]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("TORCHFIX_SEED"):
    start_recorder()
run_users_own()
