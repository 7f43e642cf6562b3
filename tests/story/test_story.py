"""The tables and the pictures of docs/from-rnn-to-transformer.md are those that the code gives."""

import pytest

from tests.story.page import FOLDER, PAGE, pictures, tables
from tests.story.pictures import PICTURES, draw
from tests.story.tables import TABLES, markdown

TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_current(name):
    assert tables(TEXT)[name] == markdown(TABLES[name]()), "run `make docs`"


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_current(name, tmp_path):
    draw(name, tmp_path / "new.svg")
    assert (tmp_path / "new.svg").read_text() == (FOLDER / f"{name}.svg").read_text(), "run `make docs`"


def test_all_of_them_are_shown():
    assert set(tables(TEXT)) == set(TABLES)
    assert sorted(pictures(TEXT)) == sorted(PICTURES) == sorted(file.stem for file in FOLDER.glob("*.svg"))
