"""Running model files: what they see while they run, and what is said when they fail."""

import sys

import pytest

from depgraph import LoadError
from depgraph_cli.loading.files import import_module, run_file


def test_a_file_sees_its_neighbours_and_its_own_command_line(write, tmp_path):
    write("WIDTH = 3\n", "sizes.py", header="")
    file = tmp_path / write("import sys\nfrom sizes import WIDTH\nargv = sys.argv\nname = __name__\n")
    before = sys.argv
    module = run_file(file)
    assert (module.WIDTH, module.argv, module.__file__) == (3, [str(file)], str(file))
    assert module.name != "__main__"
    assert sys.argv is before


def test_nothing_is_written_beside_the_file(write, tmp_path):
    file = tmp_path / write("model = nn.Linear(2, 2)\n")
    run_file(file)
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_named_like_a_library_hides_it_from_no_one(write, tmp_path):
    import json

    run_file(tmp_path / write("import json\nloads = json.loads\n", "json.py"))
    assert sys.modules["json"] is json


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\ny = x + missing\n", r"NameError: name 'missing' is not defined \(bad.py:2, `y = x \+ missing`\)."),
        ("x = 1\n\ndef f(:\n", r"SyntaxError: invalid syntax \(bad.py:3, `def f\(:`\)."),
        ("import nowhere_to_be_found\n", r"ModuleNotFoundError: No module named 'nowhere_to_be_found' \(bad.py:1,"),
        ("open('data.bin')\n", r"FileNotFoundError: .*data.bin.* \(bad.py:1,"),
        ("import sys\nsys.exit(3)\n", r"it calls sys.exit\(3\) \(bad.py:2, `sys.exit\(3\)`\)."),
        ("from . import sizes\n", r"relative import .* name it as package.module:attr instead."),
    ],
)
def test_a_failing_file_is_named_with_its_line(write, tmp_path, source, message):
    file = tmp_path / write(source, "bad.py", header="")
    with pytest.raises(LoadError, match="bad.py cannot be imported: .*" + message):
        run_file(file)


def test_the_line_is_the_innermost_of_the_user_s_own(write, tmp_path):
    write("def half(x):\n    return x // 0\n", "arithmetic.py", header="")
    file = tmp_path / write("import arithmetic\narithmetic.half(1)\n", header="")
    with pytest.raises(LoadError, match=r"ZeroDivisionError: .* \(arithmetic.py:2, `return x // 0`\)"):
        run_file(file)


def test_modules_are_found_in_the_working_directory(write):
    write("x = 1\n", "package/module.py")
    write("", "package/__init__.py")
    assert import_module("package.module").x == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere.net", "There is no module 'nowhere'"),
        ("shop.nets", "There is no module 'shop.nets'"),
        (
            "shop.broken",
            r"The module shop.broken cannot be imported: ModuleNotFoundError: .*'nowhere' \(shop/broken.py:1,",
        ),
        (
            "shop.worse",
            r"The module shop.worse cannot be imported: ZeroDivisionError: .* \(shop/worse.py:1, `1 / 0`\).",
        ),
    ],
)
def test_a_failing_module_is_named(write, name, message):
    write("", "shop/__init__.py", header="")
    write("import nowhere\n", "shop/broken.py", header="")
    write("1 / 0\n", "shop/worse.py", header="")
    with pytest.raises(LoadError, match=message):
        import_module(name)
