"""`tutorsim.open`: the questions of the commands, as frames."""

import pydoc
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

import tutorsim
from tutorsim.errors import BallotFileError, UsageError
from tutorsim.records import EpisodeRecord, read_lines

ROOT = Path(__file__).parents[2]
DEMO = ROOT / "cassettes" / "demo"

VOTES = """episode_id,turn,stage,voter,candidate,mass,protocol
e1,1,vote_final,ann,red,1,simple
e1,1,vote_final,ann,blue,0,simple
e1,1,vote_final,ben,red,1,simple
e1,1,vote_final,ben,blue,0,simple
e1,1,vote_final,cem,red,0,simple
e1,1,vote_final,cem,blue,1,simple
e2,1,vote_final,ann,red,1,simple
e2,1,vote_final,ann,blue,0,simple
e2,1,vote_final,ben,red,0,simple
e2,1,vote_final,ben,blue,1,simple
"""


@pytest.fixture
def votes(tmp_path):
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return path


def test_a_file_of_ballots_is_recounted(votes, shell):
    run = tutorsim.open(votes)
    assert (run.system, run.tables) == (None, ("ballots",))
    assert run.ballots.height == 10
    found = run.recount(["simple"], exempt=[0])
    told = shell("recount", votes, "--targets", "simple", "--exempt", "0", "--json").json()
    assert found.result.model_dump(mode="json")["rules"] == told["rules"]
    [kept] = found.rules.rows(named=True)  # no order is logged, so that a tie stays one
    assert (kept["ties"], kept["turns"], kept["not_settled"]) == ("set", 2, 0)
    wins = found.wins.select("candidate", "certain", "point", "possible")
    assert sorted(wins.rows()) == [("blue", 0, 0, 1), ("red", 1, 1, 2)]
    assert found.turns.get_column("tied_set").to_list() == [[], ["blue", "red"]]
    file = votes.with_name("turns.parquet")
    shell("recount", votes, "--targets", "simple", "--exempt", "0", "--turns", file)
    assert found.turns.equals(pl.read_parquet(file), null_equal=True)


def test_approval_is_answered_along_how_many_a_voter_approves_of(votes):
    found = tutorsim.open(votes).recount(["approval"], exempt=[0])
    assert found.approvals.select("least", "most").rows() == [(1, 1), (1, None)]
    given = tutorsim.open(votes).recount(["approval"], exempt=[0], approves="1")
    same = tutorsim.open(votes).recount(["approval"], exempt=[0], approves=(1, 1))
    assert given.turns.equals(same.turns, null_equal=True)
    # with one approval each, red has both votes of one turn, and the other is tied
    assert given.turns.get_column("necessary_winner").to_list().count("red") == 1


def test_own_rules_are_counted_beside_the_targets(votes):
    def longest_name(ballots):
        assert ballots.format == "simple"
        return {name: len(name) for name in ballots.candidates}

    rules = {"veto": tutorsim.RankScores([1, 0]), "long": longest_name}
    found = tutorsim.open(votes).recount(["simple"], rules=rules, exempt=[0])
    rows = {row["target"]: row for row in found.rules.rows(named=True)}
    # With two candidates the one who is last least often is first most often.
    assert {**rows["veto"], "target": "simple"} == rows["simple"]
    assert rows["long"]["answers"] == "point only"
    unknown = ("identified", "not_settled", "agreement_certain", "agreement_possible")
    assert [rows["long"][column] for column in unknown] == [None] * 4
    assert rows["long"]["agreement_point"] == 0
    wins = found.wins.filter(target="long").select("candidate", "certain", "point", "possible")
    assert sorted(wins.rows()) == [("blue", None, 2, None), ("red", None, 0, None)]
    assert found.turns.filter(target="long")["point_winner"].to_list() == ["blue", "blue"]
    assert any("rule veto surely keeps the winner of " in sentence for sentence in found.verdict)
    [told] = [sentence for sentence in found.verdict if "rule long" in sentence]
    assert told == (
        "The rule long keeps the winner of 0 of 1 turn, as long as a tie counts as nobody's win: "
        "a point, which nothing bounds."
    )
    assert "under 3 rules" in repr(found)
    assert "point only" in found._repr_html_()


def test_a_recount_under_own_functions_alone_says_nothing_of_bounds(votes):
    found = tutorsim.open(votes).recount(
        [], rules={"all": lambda b: dict.fromkeys(b.candidates, 0)}
    )
    assert set(found.rules["answers"]) == {"point only"}
    assert not any("urely" in sentence for sentence in found.verdict)
    assert set(found.turns["point_state"]) == {"tie"}


def test_reprs_are_short_and_pages_are_escaped(tmp_path):
    path = tmp_path / "a<b.csv"
    path.write_text(VOTES)
    run = tutorsim.open(path)
    assert repr(run) == "<a<b.csv: ballots; ballots from elsewhere (a<b.csv)>"
    found = run.recount(["simple"], exempt=[0])
    assert len(repr(found)) < 120
    for html in (run._repr_html_(), found._repr_html_()):
        assert "a&lt;b.csv" in html
        assert "a<b.csv" not in html
    assert "<table" in found._repr_html_()


def test_wrong_inputs_are_refused(votes, tmp_path):
    run = tutorsim.open(votes)
    with pytest.raises(UsageError, match="does not exist"):
        tutorsim.open(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="'colour' is not among the hints"):
        tutorsim.open(votes, colour="red")
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(BallotFileError):
        tutorsim.open(empty)
    with pytest.raises(UsageError, match="no table 'turns'"):
        _ = run.turns
    with pytest.raises(UsageError, match="no conditions"):
        run.contrasts()
    with pytest.raises(UsageError, match="ending"):
        run.report(tmp_path / "page.txt")
    with pytest.raises(UsageError, match="not a rule"):
        run.recount(["smiple"])
    with pytest.raises(UsageError, match="4 scores for 2 candidates"):
        run.recount(rules={"mine": tutorsim.RankScores([3, 1, 0, 0])})
    with pytest.raises(UsageError, match="'grey' is no candidate"):
        tutorsim.open(votes, fallback_order=("grey",))


def test_help_leads_to_it():
    shown = pydoc.render_doc(tutorsim, renderer=pydoc.plaintext)
    assert 'tutorsim.open("runs/pilot")' in shown
    assert "tutorsim.RankScores([1, 1, 1, 0])" in shown
    with pytest.raises(AttributeError, match="no attribute 'opne'"):
        tutorsim.opne  # noqa: B018


@pytest.mark.costly
def test_a_recording_gives_the_frames_and_answers_of_the_commands(tmp_path, shell):
    log = tmp_path / "demo"
    assert shell("replay", DEMO, "--log-dir", log).code == 0
    run, of_log = tutorsim.open(DEMO), tutorsim.open(log)
    folder = Path(run._path)
    assert repr(run) == repr(of_log)
    assert run.episodes.equals(of_log.episodes)
    records = list(read_lines(log, EpisodeRecord))
    assert run.episodes.height == len(records)
    assert run.calls.height == sum(len(record.calls) for record in records)
    voted = [turn.decision.winner for record in records for turn in record.turns if turn.decision]
    assert Counter(run.turns.get_column("winner").drop_nulls()) == Counter(voted)
    told = shell("recount", log, "--targets", "ranked", "--json").json()
    found = run.recount(["ranked"])
    assert found.result.model_dump(mode="json")["rules"] == told["rules"]
    tested = shell("summary", log, "--json").json()["values"]["contrasts"]
    assert run.contrasts().select("pairs", "difference", "p", "p_holm").rows() == [
        (row["test"]["n"], row["difference"]["value"], row["test"]["p_value"], row["p_holm"])
        for row in tested
    ]
    assert run.report(tmp_path / "page.md").read_text().startswith("# Report of demo")
    del run
    assert not folder.exists()


@pytest.mark.costly
def test_other_systems_open_with_their_own_tables():
    debate = tutorsim.open(ROOT / "cassettes" / "debate")
    assert debate.system == "debate"
    assert "messages" in debate.tables
    assert debate.recount(["approval"], exempt=[0]).rules.height
    group = tutorsim.open(ROOT / "cassettes" / "group")
    with pytest.raises(UsageError, match="'group'"):
        group.recount()


def test_outcomes_are_the_rows_that_the_commands_write(tmp_path, shell):
    """`export`, `recount --outcomes`, `recount --json` and Python give one table."""
    shell("replay", ROOT / "cassettes" / "debate", "--log-dir", tmp_path / "run")
    run, file = tutorsim.open(tmp_path / "run"), tmp_path / "outcomes.parquet"
    told = shell("recount", tmp_path / "run", "--outcomes", file, "--json").json()
    shell("export", tmp_path / "run", "-o", tmp_path / "tables")
    written = pl.read_parquet(file)
    assert written.equals(pl.read_parquet(tmp_path / "tables" / "outcomes.parquet"))
    assert run.outcomes.equals(written.drop("provenance"))
    assert run.outcomes.equals(run.table("outcomes"))
    assert told["episodes"]["outcomes"] == run.outcomes.to_dicts()
    shell("recount", tmp_path / "run", "--set", "merge_identical=true", "--outcomes", file)
    under = run.outcomes_under(merge_identical=[True])
    assert under.equals(pl.read_parquet(file).drop("provenance"))


def test_outcomes_of_turns_alone_are_refused(votes, shell):
    with pytest.raises(UsageError, match=r"votes\.csv has no outcomes") as refused:
        _ = tutorsim.open(votes).outcomes
    assert "recount().turns" in str(refused.value.hint)
    said = shell("recount", votes, "--outcomes", votes.with_name("out.csv"))
    said.fails(2, "--outcomes is for runs of systems")
