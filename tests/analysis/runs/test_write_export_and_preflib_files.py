import csv
import json

import polars as pl
import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import by_name
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.analysis.runs.exported_tables import TABLES
from tutorsim.analysis.runs.write_export_and_preflib_files import (
    EXPORT_FORMATS,
    export,
    export_preflib,
    export_run,
    write_frames,
)
from tutorsim.analysis.systems.panel.winning_roles_ties_ballots_shift_flip_chance import (
    turn_diagnostics,
)
from tutorsim.errors import FolderError, UsageError
from tutorsim.records import EPISODES_FILE, RUN_FILE, to_line

S, MI, MO, ME = "scaffolding", "misconception", "motivation", "metacognitive"
ROLES = (S, MI, MO, ME)
ORDER = (MO, ME, MI, S)


@pytest.fixture
def source():
    """All protocols; ties, a tie round, an abstention, another order than the roles'."""
    even = {S: S, MI: S, MO: MI, ME: MI}
    turns = [
        panel_turn("simple", even, tie=even, order=ORDER),
        panel_turn("ranked", dict.fromkeys(ROLES, ROLES), order=ORDER),
        panel_turn("cumulative", {S: {S: 20, MI: 5, MO: 0, ME: 0}, MI: None}, order=ORDER),
        panel_turn("approval", {S: (S, MO), MI: (), MO: (S,), ME: None}, order=ORDER),
    ]
    return panel_source(*(panel_episode(turn) for turn in turns), fallback_order=ORDER)


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_exported_ballots_read_back_give_the_same_decisions(source, tmp_path, form):
    written = export(source, tmp_path / "out", form)
    assert [path.name for path in written[: len(TABLES)]] == [f"{name}.{form}" for name in TABLES]
    hints = Hints(fallback_order=source.fallback_order)
    again = open_source(tmp_path / "out", hints=hints)
    assert again.ballots.equals(by_name(source.ballots))
    assert again.stated == (source.provenance,)
    turn = ["episode_id", "turn"]
    assert turn_diagnostics(again).sort(turn).equals(turn_diagnostics(source).sort(turn))


def test_tables_of_lists_are_json_in_csv(source, tmp_path):
    export(source, tmp_path, "csv")
    frame = pl.read_csv(tmp_path / "turns.csv")
    assert [json.loads(cell) for cell in frame["tied_set"]] == [[S, MI], [], [], []]
    parquet = tmp_path / "p"
    export(source, parquet, "parquet")
    for name, table in TABLES.items():
        written = pl.read_parquet(parquet / f"{name}.parquet")
        assert written.drop("provenance").schema == table.schema


@pytest.mark.filterwarnings("ignore")
def test_preflib_files_hold_the_ballots_of_each_round(source, tmp_path):
    instances = pytest.importorskip("preflibtools.instances")
    files = {path.name: path for path in export_preflib(source.ballots, tmp_path)}
    assert list(files) == [
        "sciq.t1.novice.ranked.t1.vote_initial.soc",
        "sciq.t1.novice.ranked.t1.vote_final.soc",
        "sciq.t1.novice.approval.t1.vote_initial.cat",
        "sciq.t1.novice.approval.t1.vote_final.cat",
    ]
    stock = instances.OrdinalInstance(str(files["sciq.t1.novice.ranked.t1.vote_final.soc"]))
    # Alternatives 1 to 4 are MO, ME, MI, S; everybody ranked S, MI, MO, ME.
    assert stock.full_profile() == [((4,), (3,), (1,), (2,))] * 4
    stock = instances.CategoricalInstance(str(files["sciq.t1.novice.approval.t1.vote_final.cat"]))
    assert sorted(stock.preferences) == [((), (1, 2, 3, 4)), ((1, 4), (2, 3)), ((4,), (1, 2, 3))]
    assert "1 abstained" in stock.title
    again = open_source(files["sciq.t1.novice.approval.t1.vote_final.cat"]).ballots
    tallies = again.group_by("candidate").agg(pl.col("mass").sum())
    assert dict(tallies.iter_rows()) == {S: 2, MO: 1, MI: 0, ME: 0}


def test_an_episode_of_any_name_stays_in_the_folder(tmp_path):
    names = ["../../up", "a/b", "a_b", "..", "long" * 100, "ä"]
    rows = [f'"{name}",1,final,v,{c},{m},ranked' for name in names for c, m in (("x", 1), ("y", 0))]
    file = tmp_path / "b.csv"
    file.write_text("episode_id,turn,stage,voter,candidate,mass,protocol\n" + "\n".join(rows))
    written = export_preflib(open_source(file).ballots, tmp_path / "out")
    assert len({path.name for path in written}) == len(names)
    assert {path.resolve().parent for path in written} == {(tmp_path / "out").resolve()}
    assert "a_b.t1.vote_final.soc" in {path.name for path in written}


def test_ballots_from_elsewhere_export_as_ballots_only(tmp_path):
    (tmp_path / "v.soc").write_text("2: 1,2\n")
    written = export(open_source(tmp_path / "v.soc"), tmp_path / "out")
    assert [path.name for path in written] == ["ballots.parquet", "v.t1.vote_final.soc"]


NAMES = ("=HYPERLINK(x)", "'=x", "+1", "-2", "@a", "\t=b", "''-c", "'d", "＝e", "plain -f")


def test_no_name_is_a_formula_in_csv_and_each_reads_back(tmp_path):
    rows = [
        f'{{"episode_id": "e", "turn": 1, "stage": "final", "voter": "v", "candidate": '
        f'{json.dumps(name)}, "mass": {int(name == "+1")}, "protocol": "simple"}}'
        for name in NAMES
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(rows), encoding="utf-8")
    source = open_source(tmp_path / "b.jsonl")
    export(source, tmp_path / "out", "csv")
    with (tmp_path / "out" / "ballots.csv").open(newline="", encoding="utf-8") as file:
        written = {row["candidate"] for row in csv.DictReader(file)}
    assert not {name for name in written if name.lstrip("'")[0] in "=+-@\t＝" and name[0] != "'"}
    assert written >= {"'=HYPERLINK(x)", "''=x", "'d", "plain -f"}
    again = open_source(tmp_path / "out" / "ballots.csv")
    assert set(again.ballots["candidate"]) == set(NAMES)
    assert again.ballots.equals(source.ballots)
    assert any("apostrophe" in note for note in again.notes)


def test_the_same_source_gives_the_same_bytes(source, tmp_path):
    for form in EXPORT_FORMATS:
        one = export(source, tmp_path / "one", form)
        two = export(source, tmp_path / "two", form)
        assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_an_unknown_format_and_an_unwritable_folder_are_refused(source, tmp_path):
    with pytest.raises(UsageError, match="'xlsx'"):
        export(source, tmp_path, "xlsx")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="no known format"):
        write_frames([source.ballots], tmp_path / "ballots.xlsx", "")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(FolderError):
        export(source, tmp_path / "file" / "out")


@pytest.mark.parametrize("form", EXPORT_FORMATS)
def test_a_log_in_pieces_gives_the_same_tables_as_a_whole_one(source, tmp_path, monkeypatch, form):
    log = tmp_path / "log"
    log.mkdir()
    (log / RUN_FILE).write_text(to_line(source.run))
    lines = "".join(to_line(episode) + "\n" for episode in source.episodes)
    (log / EPISODES_FILE).write_text(lines)
    monkeypatch.setattr("tutorsim.analysis.runs.write_export_and_preflib_files.PIECE", 1)
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    names = [path.relative_to(whole) for path in export(source, whole, form)]
    assert [path.relative_to(pieces) for path in export_run(log, pieces, form)] == names
    assert sorted(path.name for path in pieces.iterdir()) == sorted(p.name for p in whole.iterdir())
    for name in names:
        if name.suffix == ".parquet":
            assert pl.read_parquet(pieces / name).equals(pl.read_parquet(whole / name))
        else:
            assert (pieces / name).read_bytes() == (whole / name).read_bytes()


def test_a_log_without_episodes_gives_tables_without_rows(source, tmp_path):
    (tmp_path / RUN_FILE).write_text(to_line(source.run))
    (tmp_path / EPISODES_FILE).write_text("")
    written = export_run(tmp_path, tmp_path / "out")
    assert [path.stem for path in written] == list(TABLES)
    for path, table in zip(written, TABLES.values(), strict=True):
        empty = pl.DataFrame(schema={**table.schema, "provenance": pl.String()})
        assert pl.read_parquet(path).equals(empty)
