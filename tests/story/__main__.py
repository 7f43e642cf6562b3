"""Rewrites the tables and the pictures of docs/from-rnn-to-transformer.md: ``python -m tests.story``."""

from rich.progress import track

from tests.story.page import FOLDER, PAGE, with_tables
from tests.story.pictures import PICTURES, draw
from tests.story.tables import TABLES, markdown

FOLDER.mkdir(exist_ok=True)
for name in track(PICTURES, "pictures"):
    draw(name, FOLDER / f"{name}.svg")
PAGE.write_text(
    with_tables(PAGE.read_text(encoding="utf-8"), {name: markdown(TABLES[name]()) for name in track(TABLES, "tables")}),
    encoding="utf-8",
)
