"""Run all benchmarks, print each row as it is done, and write docs/benchmarks.md."""

import sys
import time

import torch

from benchmarks import comparison, lstm, models, recording, startup, table
from benchmarks.graphs import CASES


def main() -> None:
    """Measure everything; names of cases as arguments limit the comparison to graphs whose names begin so."""
    torch.set_num_threads(1)
    wanted = tuple(sys.argv[1:])
    begin = time.perf_counter()
    recordings = []
    for recorded in () if wanted else recording.recordings():
        against = recorded.reason or f"{table.seconds(recorded.exported)}, {recorded.ratio:.2f}"
        print(f"Recording {recorded.model}: {table.seconds(recorded.ours)} / {against}", flush=True)
        recordings.append(recorded)
    figures = []
    for figure in () if wanted else models.figures():
        print(f"{figure.what} / {figure.against}: {table.seconds(figure.seconds)}, {figure.ratio:.2f}", flush=True)
        figures.append(figure)
    rows: dict[str, list[comparison.Row]] = {"longest": [], "distances": []}
    cases = tuple(case for case in CASES if not wanted or case.name.startswith(wanted))
    for measure, row in comparison.compare(cases):
        peers = {name: outcome.reason or table.seconds(outcome.seconds) for name, outcome in row.peers.items()}
        print(f"{row.case}, {measure}: {table.seconds(row.ours.seconds)} {peers}", flush=True)
        rows[measure].append(row)
    if wanted:
        return
    others = [*lstm.ratios(), *startup.ratios()]
    table.PAGE.write_text(table.page(rows, recordings, figures, others))
    print(f"Wrote {table.PAGE} after {(time.perf_counter() - begin) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
