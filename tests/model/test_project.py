"""Names across files refer to what Python would import."""

from __future__ import annotations

import pytest

from torchfix_codemods.engine import check
from torchfix_codemods.model import FileModel, Kind, Project
from torchfix_codemods.model.project import ProjectView, Reach
from torchfix_codemods.model.project_names import Symbol
from torchfix_codemods.source import Source
from torchfix_codemods.transforms import CHAIN
from torchfix_codemods.workspace.snapshot import Snapshot

NET = "from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return x.relu()\n"


@pytest.fixture
def project(tmp_path):
    """Writes files, and gives a function that resolves a name as one of them sees it, to `file:name`."""

    def write(**files):
        for name, text in {"pyproject_toml": "", **files}.items():
            path = tmp_path / name.replace("__init__", "<init>").replace("__", "/").replace("<init>", "__init__").replace("_toml", ".toml")
            path = path if path.suffix == ".toml" else path.with_name(path.name + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = Project(Snapshot())

        def resolve(file, dotted):
            symbol = found.resolve(str(tmp_path / file), dotted)
            return symbol and f"{symbol.path.removeprefix(str(tmp_path) + '/')}:{symbol.name}"

        resolve.project = found
        return resolve

    return write


@pytest.mark.parametrize(
    ("files", "asker", "dotted", "answer"),
    [
        ({"train": "", "models": NET}, "train.py", "models.Net", "models.py:Net"),
        ({"train": "", "models": NET}, "train.py", "models", "models.py:"),
        ({"pkg____init__": "", "pkg__net": NET, "pkg__train": ""}, "pkg/train.py", ".net.Net", "pkg/net.py:Net"),
        ({"pkg____init__": "", "pkg__net": NET, "pkg__sub____init__": ""}, "pkg/sub/a.py", "..net.Net", "pkg/net.py:Net"),
        ({"pkg____init__": "from .net import Net", "pkg__net": NET, "train": ""}, "train.py", "pkg.Net", "pkg/net.py:Net"),
        ({"pkg____init__": "from .net import *", "pkg__net": NET, "train": ""}, "train.py", "pkg.Net", "pkg/net.py:Net"),
        ({"pkg____init__": "from . import net as n", "pkg__net": NET, "train": ""}, "train.py", "pkg.n.Net", "pkg/net.py:Net"),
        ({"src__pkg____init__": "", "src__pkg__net": NET, "scripts__train": ""}, "scripts/train.py", "pkg.net.Net", "src/pkg/net.py:Net"),
        ({"a__net": NET, "b__net": NET, "a__train": ""}, "a/train.py", "net.Net", "a/net.py:Net"),
        ({"folder__net": NET, "train": ""}, "train.py", "folder.net.Net", "folder/net.py:Net"),
        ({"net": NET}, "train.py", "net.Net.forward", "net.py:Net.forward"),
        ({"net": "try:\n    from fast import Net\nexcept ImportError:\n    from slow import Net", "slow": NET}, "t.py", "net.Net", None),
        (
            {"net": "try:\n    from .slow import Net\nexcept ImportError:\n    from slow import Net", "slow": NET},
            "t.py",
            "net.Net",
            "slow.py:Net",
        ),
        ({"net": NET + "Net = wrap(Net)"}, "t.py", "net.Net", None),
        ({"net": "if fast:\n    class Net: ...\nelse:\n    class Net: ..."}, "t.py", "net.Net", None),
        ({"a": "from b import *", "b": "from a import *"}, "t.py", "a.Net", None),
        ({"a": "from b import Net", "b": "from a import Net"}, "t.py", "a.Net", None),
        ({"a": "from b import *\nfrom c import *", "b": NET, "c": NET}, "t.py", "a.Net", None),
        ({"logging": NET}, "t.py", "logging.Net", None),
        ({"torch__nn": NET}, "t.py", "torch.nn.Net", None),
        ({"net": NET}, "t.py", "net.Missing", None),
        ({"net": "print 'Python 2'"}, "t.py", "net.Net", None),
        ({"pkg____init__": "", "pkg__utils": "", "utils": NET}, "pkg/train.py", "utils.Net", "utils.py:Net"),
    ],
)
def test_resolution(project, files, asker, dotted, answer):
    assert project(**files)(asker, dotted) == answer


def test_several_projects_in_one_repository(project):
    resolve = project(one__pyproject_toml="", one__net=NET, two__pyproject_toml="", two__train="", net=NET)
    assert resolve("one/train.py", "net.Net") == "one/net.py:Net"
    # The top of a project is where the search ends: a neighbour's or the repository's files aren't on its path.
    assert resolve("two/train.py", "net.Net") is None


def test_lineage_goes_through_files(project, tmp_path):
    resolve = project(base=NET, middle="import base\nclass Middle(base.Net): ...", top="from middle import Middle\nclass Top(Middle): ...")
    lineage = list(resolve.project.lineage(Symbol(str(tmp_path / "top.py"), "Top")))
    assert [entry if isinstance(entry, str) else entry.name for entry in lineage] == ["Top", "Middle", "Net", "torch.nn.Module"]


def model_of(project, path, reach=Reach.CALLERS):
    return FileModel(Source.decode(str(path), path.read_bytes()), view=ProjectView(project, str(path), reach))


def fact_at_end(model):
    return model.fact(model.tree.body[-1].value)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("from models import Net\nNet()", Kind.MODULE),
        ("import models\nmodels.Net().to('cpu')", Kind.MODULE),
        ("from models import build\nbuild(3)", Kind.MODULE),
        ("from models import Net\nimport torch\nNet()(torch.zeros(3))", Kind.TENSOR),
        ("from models import Helper\nHelper()", Kind.OTHER),
    ],
)
def test_facts_through_imports(project, tmp_path, code, kind):
    models = NET + "def build(n):\n    return Net()\nclass Helper: ...\n"
    resolve = project(models=models.replace("x.relu()", "nn.functional.relu(x)"), train=code)
    fact = fact_at_end(model_of(resolve.project, tmp_path / "train.py"))
    assert (fact.kind, fact.proven) == (kind, True)


def test_behaviour_names_parameters_and_gradients(project, tmp_path):
    code = "import torch\n@torch.no_grad()\ndef test(model: torch.nn.Module, x):\n    model.eval()\n    return model(x)\n"
    outer = "from engine import test\ndef run(n, net):\n    return test(x=n, model=net.inner)\n"
    resolve = project(engine=code, main=outer)
    steps = resolve.project.trace(Symbol(str(tmp_path / "main.py"), "run"))
    assert [(s.happening.name, s.subject.parameter, s.subject.attributes, s.records) for s in steps] == [
        ("EVAL", "net", ("inner",), False),
        ("FORWARD", "net", ("inner",), False),
    ]


def test_callers_are_found_through_packages(project, tmp_path):
    resolve = project(
        pkg____init__="from .engine import test",
        pkg__engine="def test(model): ...",
        one="import pkg\npkg.test(1)",
        two="from pkg.engine import test\ntest(2)",
        three="from other import test\ntest(3)",
        four="test(4)",
    )
    model = model_of(resolve.project, tmp_path / "pkg" / "engine.py")
    calls = model.kinds.imported.callers(model.tree.body[0])
    assert sorted(call.args[0].value for _, call in calls) == [1, 2]


def test_answers_do_not_depend_on_the_order_of_questions(tmp_path):
    files = {
        "a.py": "from b import *\nfrom c import f\nimport torch\ndef g(model):\n    model.eval()\n    return f(model)\n",
        "b.py": "from a import *\nfrom c import Net\nimport torch\ndef h(x):\n    return Net()(x).data\n",
        "c.py": "from b import h\nfrom a import g\n" + NET + "def f(m: Net):\n    g(m)\n    h(1).data.norm()\n    return m(1)\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    def findings(order):
        project = Project(Snapshot([str(tmp_path)]))
        views = {name: ProjectView(project, str(tmp_path / name)) for name in order}
        return {name: check(Source.decode(name, files[name].encode()), CHAIN, views[name]) for name in order}

    names = list(files)
    orders = [names, names[::-1], ["b.py", "a.py", "c.py"]]
    assert all(findings(order) == findings(names) for order in orders)
