import pytest

from tests.analysis.panel_runs import panel_episode, panel_source, panel_turn
from tutorsim.analysis.ballots.reading_options_and_column_words import Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.errors import BallotFileError, LogError
from tutorsim.records import to_line


def test_a_run_folder_opens_with_its_order_episodes_and_provenance(tmp_path):
    roles = ("motivation", "metacognitive", "misconception", "scaffolding")
    turn = panel_turn("simple", {"scaffolding": None}, order=roles)
    made = panel_source(panel_episode(turn), fallback_order=roles, cumulative_budget=30)
    (tmp_path / "run.json").write_text(to_line(made.run) + "\n")
    (tmp_path / "episodes.jsonl").write_text("".join(to_line(e) + "\n" for e in made.episodes))
    opened = open_source(tmp_path)
    assert (opened.name, opened.fallback_order, opened.budget) == (tmp_path.name, roles, 30)
    assert opened.episodes == made.episodes
    assert opened.ballots.equals(made.ballots)
    assert opened.provenance == "stand-in: made-up, model-a"


def test_a_file_is_named_without_its_path_and_says_that_it_is_from_elsewhere(tmp_path):
    (tmp_path / "v.soc").write_text("1: 1,2\n")
    source = open_source(tmp_path / "v.soc")
    assert (source.name, source.provenance) == ("v.soc", "ballots from elsewhere (v.soc)")
    assert str(tmp_path) not in repr(source)


def test_an_exports_ballots_are_read_alone(tmp_path):
    (tmp_path / "v.soc").write_text("1: 1,2\n")
    open_source(tmp_path / "v.soc").ballots.write_csv(tmp_path / "ballots.csv")
    (tmp_path / "turns.csv").write_text("not,ballots\n")
    assert open_source(tmp_path).ballots.height == 2


def test_a_folder_without_run_or_ballots_and_an_unknown_ending_are_refused(tmp_path):
    with pytest.raises(BallotFileError, match="neither a run nor ballots"):
        open_source(tmp_path)
    with pytest.raises(BallotFileError, match="neither a run nor ballots"):
        open_source(tmp_path / "absent.csv")
    (tmp_path / "b.txt").write_text("votes")
    with pytest.raises(BallotFileError, match="no file of ballots"):
        open_source(tmp_path / "b.txt")


def test_a_damaged_run_is_an_error_of_the_log(tmp_path):
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(LogError):
        open_source(tmp_path)


def test_whose_candidate_is_whose_is_said_by_every_file_of_a_folder(tmp_path):
    for vote, mine in (("one", "ann"), ("two", "ben")):
        text = f"episode_id,voter,choice,mine\n{vote},v,ann,{mine}\n{vote},w,ben,\n"
        (tmp_path / f"{vote}.csv").write_text(text)
    source = open_source(tmp_path, hints=Hints(own="mine"))
    assert source.own == {"one": {"v": "ann"}, "two": {"v": "ben"}}
    assert open_source(tmp_path).own is None
