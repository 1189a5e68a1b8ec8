"""Files as people have them: what is read of each, what is assumed, and what is refused."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

import tutorsim
from tutorsim.analysis.ballots.convert_to_long_format import lay_out
from tutorsim.analysis.ballots.read_ballot_files_into_typed_columns import read_candidates
from tutorsim.analysis.ballots.reading_options_and_column_words import NO_HINTS, Hints
from tutorsim.analysis.ballots.recount_source import open_source
from tutorsim.errors import BallotFileError, UsageError


class Read(NamedTuple):
    """A file and how it is read: protocol, voter → candidate → mass, words of the notes."""

    text: str
    protocol: str
    masses: Mapping[str, Mapping[str, int | None]]
    words: str
    name: str = "b.csv"
    hints: Hints = NO_HINTS


class Refused(NamedTuple):
    """A file that is not read, and words of the reason."""

    text: str
    words: str
    name: str = "b.csv"
    hints: Hints = NO_HINTS
    error: type[BallotFileError | UsageError] = BallotFileError


RANKED = {"v": {"ann": 2, "ben": 1, "cid": 0}, "w": {"ann": 0, "ben": 1, "cid": 2}}
ANN, BEN, NOBODY = {"ann": 1, "ben": 0}, {"ann": 0, "ben": 1}, {"ann": None, "ben": None}
AB, BA = {"v": ANN, "w": BEN}, {"v": BEN, "w": ANN}
RB = {"v": {"red": 1, "blue": 0}, "w": {"red": 0, "blue": 1}}
PEOPLE = {"v": {"Smith, John": 1, "Doe, Jane": 1}, "w": {"Smith, John": 1, "Doe, Jane": 0}}

NATURAL: dict[str, Read] = {
    "one column a candidate": Read(
        "voter,ann,ben,cid\nv,1,0,0\nw,0,1,0\n",
        "simple",
        {"v": {"ann": 1, "ben": 0, "cid": 0}, "w": {"ann": 0, "ben": 1, "cid": 0}},
        "one column a candidate (ann, ben, cid)",
    ),
    "ranks in columns of candidates": Read(
        "voter\tann\tben\tcid\nv\t1\t2\t3\nw\t3\t2\t1\n",
        "ranked",
        RANKED,
        "1 the best",
        name="b.tsv",
    ),
    "crosses": Read(
        "voter,ann,ben\nv,x,\nw,x,x\n",
        "approval",
        {"v": ANN, "w": {"ann": 1, "ben": 1}},
        "every cell is 0 or 1",
    ),
    "columns of places": Read(
        "Voter,1st choice,2nd choice,3rd choice\nv,ann,ben,cid\nw,cid,ben,\n",
        "ranked",
        {"v": RANKED["v"], "w": {"ann": None, "ben": 1, "cid": 2}},
        "orders in the columns 1st choice",
    ),
    "numbered columns of places": Read(
        "voter,rank1,rank2,rank3\nv,ann,ben,cid\nw,cid,ben,ann\n",
        "ranked",
        RANKED,
        "orders in the columns rank1",
    ),
    "one choice in a cell": Read(
        "Agent,Vote\nv,ann\nw,ben\n", "simple", AB, "voter in “Agent”, choice in “Vote”"
    ),
    "one order in a cell": Read(
        "voter,ranking\nv,ann > ben > cid\nw,cid > ben > ann\n", "ranked", RANKED, "parted by '>'"
    ),
    "all approved in a cell": Read(
        "voter,approved\nv,ann;ben\nw,ben\nx,\n",
        "approval",
        {"v": {"ann": 1, "ben": 1}, "w": BEN, "x": NOBODY},
        "all approved in “approved”",
    ),
    "a row for each approved": Read(
        "voter,candidate\nv,ann\nv,ben\nw,ben\n",
        "approval",
        {"v": {"ann": 1, "ben": 1}, "w": {"ben": 1, "ann": 0}},
        "a voter approves of every",
    ),
    "ranks in rows": Read(
        "voter,candidate,rank\nv,ann,1\nv,ben,2\nv,cid,3\nw,cid,1\nw,ben,2\nw,ann,3\n",
        "ranked",
        RANKED,
        "ranks, 1 the best",
    ),
    "ranks in rows, by another word": Read(
        "POLL\tPerson\tOption\tPlace\n"
        "p\tv\tann\t1\np\tv\tben\t2\np\tv\tcid\t3\np\tw\tcid\t1\np\tw\tben\t2\np\tw\tann\t3\n",
        "ranked",
        RANKED,
        "ranks, 1 the best",
        name="b.tsv",
    ),
    "scores from one in rows": Read(
        "voter,candidate,score\nv,ann,3\nv,ben,2\nv,cid,1\nw,cid,3\nw,ben,2\nw,ann,1\n",
        "ranked",
        RANKED,
        "the highest the best",
    ),
    "orders in JSON lists": Read(
        '[{"voter": "v", "ranking": ["ann", "ben", "cid"]},'
        ' {"voter": "w", "ranking": ["cid", "ben", "ann"]}]',
        "ranked",
        RANKED,
        "order in “ranking”, best first",
        name="b.json",
    ),
    "approvals in JSON lists, with a separator in a name": Read(
        '[{"voter": "v", "approves": ["ann, the first", "ben"]},'
        ' {"voter": "w", "approves": ["ben"]}, {"voter": "x", "approves": []}]',
        "approval",
        {
            "v": {"ann, the first": 1, "ben": 1},
            "w": {"ann, the first": 0, "ben": 1},
            "x": {"ann, the first": None, "ben": None},
        },
        "all approved in “approves”",
        name="b.json",
    ),
    "semicolons, decimal commas and another language": Read(
        "Wähler;ann;ben\nv;2,5;7,5\nw;10;0\n",
        "cumulative",
        {"v": {"ann": 25, "ben": 75}, "w": {"ann": 100, "ben": 0}},
        "points times 10",
        hints=Hints(columns={"voter": "Wähler"}),
    ),
    "Borda by name, from one": Read(
        "voter,candidate,points,rule\n"
        "v,ann,3,Borda\nv,ben,2,Borda\nv,cid,1,Borda\nw,cid,3,Borda\nw,ben,2,Borda\nw,ann,1,Borda\n",
        "ranked",
        RANKED,
        "Borda points from 1",
    ),
    "plurality by name": Read(
        "voter,ann,ben,protocol\nv,1,0,plurality\nw,0,1,Plurality\n",
        "simple",
        AB,
        "one column a candidate",
    ),
    "raw replies": Read(
        json.dumps(
            [
                {"voter": "v", "reply": "I would go with Ben here."},
                {"voter": "w", "reply": "Vote: A"},
                {"voter": "x", "reply": "cannot say"},
            ]
        ),
        "simple",
        {"v": BEN, "w": ANN, "x": NOBODY},
        "1 of them unreadable and so abstentions",
        name="b.json",
        hints=Hints(candidates=("ann", "ben"), protocol="plurality"),
    ),
    "no voter column": Read(
        "choice\nann\nben\n", "simple", {"1": ANN, "2": BEN}, "every row a voter"
    ),
    "another stage": Read(
        "voter,stage,choice\nv,Stichwahl,ann\nw,Stichwahl,ben\n",
        "simple",
        AB,
        "the stage 'Stichwahl' is the final vote",
    ),
    "columns beside the candidates": Read(
        "voter,age,ann,ben\nv,31,1,0\nw,44,0,1\n",
        "simple",
        AB,
        "one column a candidate (ann, ben)",
        hints=Hints(candidates=("ann", "ben")),
    ),
    "weights of voters": Read(
        "voter,choice,weight\nv,ann,2\nw,ben,1\n",
        "simple",
        {"v (1 of 2)": ANN, "v (2 of 2)": ANN, "w": BEN},
        "2 ballots count as those of 3 voters",
    ),
    "orders with their numbers": Read(
        "ranking,count\nann>ben,1\nben>ann,2\n",
        "ranked",
        {"1": ANN, "2 (1 of 2)": BEN, "2 (2 of 2)": BEN},
        "weights in “count”",
    ),
    "weights with decimals": Read(
        "voter,weight,ann,ben\nv,0.1,1,0\nw,0.2,0,1\n",
        "simple",
        {"v": AB["v"], "w (1 of 2)": AB["w"], "w (2 of 2)": AB["w"]},
        "times 10",
    ),
    "abstain as a choice": Read(
        "voter,choice\nv,ann\nw,ben\nx,abstain\n",
        "simple",
        AB | {"x": NOBODY},
        "abstentions by their words: 1 of “abstain”",
    ),
    "N/A and none as choices": Read(
        "voter,vote\nv,ann\nw,ben\nx,N/A\ny,None\n",
        "simple",
        AB | dict.fromkeys("xy", NOBODY),
        "1 of “N/A”, 1 of “None”",
    ),
    "none that is a candidate": Read(
        "voter,vote\nv,ann\nw,none\n",
        "simple",
        {"v": {"ann": 1, "none": 0}, "w": {"ann": 0, "none": 1}},
        "one choice",
        hints=Hints(candidates=("ann", "none")),
    ),
    "names in two cases, one": Read(
        "voter,choice\nv,Red\nw,red\nx,blue\n",
        "simple",
        {"v": {"Red": 1, "blue": 0}, "w": {"Red": 1, "blue": 0}, "x": {"Red": 0, "blue": 1}},
        "one choice",
        hints=Hints(spelling="one"),
    ),
    "names in two cases, apart": Read(
        "voter,choice\nv,Red\nw,red\n",
        "simple",
        {"v": {"Red": 1, "red": 0}, "w": {"Red": 0, "red": 1}},
        "one choice",
        hints=Hints(spelling="apart"),
    ),
    "names with a character without width": Read(
        "voter,choice\nv,ann\nw,\u200bann\nx,ben\n",
        "simple",
        {"v": ANN, "w": ANN, "x": BEN},
        "one choice",
        hints=Hints(spelling="one"),
    ),
    "commas in names": Read(
        'voter,approves\nv,"Smith, John; Doe, Jane"\nw,"Smith, John"\n',
        "approval",
        PEOPLE,
        "parted by ';'",
    ),
    "commas in names, said": Read(
        'voter,approves\nv,"Smith, John"\nw,"Smith, John"\n',
        "approval",
        {n: {"Smith, John": 1} for n in "vw"},
        "parted by ';'",
        hints=Hints(separator=";"),
    ),
    "weeks and namesakes": Read(
        "week,voter,ann,ben\n1,v,1,0\n2,v,0,1\n",
        "simple",
        {"v #1": AB["v"], "v #2": AB["w"]},
        "not used: week",
        hints=Hints(namesakes=True),
    ),
    "tasks": Read(
        "task,voter,choice,note\nt,v,ann,x\nt,w,ben,y\n",
        "simple",
        AB,
        "episode_id in “task”; one choice in “choice”; one vote each; all final votes; "
        "not used: note",
    ),
    "questions by another word": Read(
        "question_id,judge,pick\nq,v,ann\nq,w,ben\n", "simple", AB, "episode_id in “question_id”"
    ),
    "one column a voter, several votes": Read(
        "question,v,w\nq1,ann,ben\nq2,ben,ann\n", "simple", BA, "one column a voter (v, w)"
    ),
    "one column a voter, orders": Read(
        "poll,v,w\np,ann>ben,ben>ann\nq,ann>ben,ann>ben\n",
        "ranked",
        {"v": ANN, "w": ANN},
        "one column a voter",
    ),
    "one row a candidate": Read(
        "candidate,v,w\nann,1,2\nben,2,1\n",
        "ranked",
        BA,
        "one column a voter",
        hints=Hints(protocol="borda"),
    ),
    "percent signs": Read(
        "voter,ann,ben\nv,60%,40 %\nw,10%,90%\n",
        "cumulative",
        {"v": {"ann": 60, "ben": 40}, "w": {"ann": 10, "ben": 90}},
        "every ballot sums to 100",
    ),
    "scores": Read(
        "voter,ann,ben\nv,3,1\nw,5,\n",
        "score",
        {"v": {"ann": 2, "ben": 0}, "w": {"ann": 4, "ben": None}},
        "a scale from 1 to 5, the smallest and the largest seen",
    ),
    "scores with decimals on a scale": Read(
        "voter,ann,ben\nv,3.5,0\nw,5,-1\n",
        "score",
        {"v": {"ann": 45, "ben": 10}, "w": {"ann": 60, "ben": 0}},
        "a scale from -1 to 5, counted from 0, in steps of 1/10",
        hints=Hints(scale=(-1, 5)),
    ),
    "missing numbers by a word": Read(
        "voter,ann,ben\nv,1,2\nw,N/A,N/A\n", "ranked", {"v": ANN, "w": NOBODY}, "1 the best"
    ),
    "ranks of some": Read(
        "voter,ann,ben,cid\nv,1,2,\nw,2,3,1\n",
        "ranked",
        {"v": {"ann": 2, "ben": 1, "cid": None}, "w": {"ann": 1, "ben": 0, "cid": 2}},
        "1 the best",
    ),
    "comments before the heading": Read(
        "# made by hand\n# in June\nvoter,choice\nv,ann\nw,ben\n",
        "simple",
        AB,
        "passed over in 2 of the lines",
    ),
    "a comment between rows": Read(
        "voter,choice\nv,ann\n# late\nw,ben\n", "simple", AB, "passed over in 1 of the lines"
    ),
    "a voter called #1": Read(
        "voter,choice\n#1,ann\n#2,ben\n", "simple", {"#1": AB["v"], "#2": AB["w"]}, "one choice"
    ),
    "an object of voters": Read(
        '{"v": "red", "w": "blue"}', "simple", RB, "one choice", name="b.json"
    ),
    "objects of votes and voters": Read(
        '{"q1": {"v": "red", "w": "blue"}}', "simple", RB, "one choice", name="b.json"
    ),
    "votes in an object each": Read(
        '[{"question": "q", "votes": {"v": "red", "w": "blue"}}]',
        "simple",
        RB,
        "episode_id in “question”",
        name="b.json",
    ),
    "ballots in a list each": Read(
        '{"polls": [{"poll": "q", "ballots": [{"voter": "v", "choice": "red"},'
        ' {"voter": "w", "choice": "blue"}]}]}',
        "simple",
        RB,
        "episode_id in “poll”",
        name="b.json",
    ),
    "scores in an object each": Read(
        '{"voter": "v", "scores": {"ann": 1, "ben": 0}}\n'
        '{"voter": "w", "scores": {"ann": 0, "ben": 1}}\n',
        "simple",
        AB,
        "one column a candidate",
        name="b.jsonl",
    ),
    "numbers of voters": Read(
        '{"v": {"ann": 7, "ben": 3}, "w": {"ann": 2, "ben": 8}}',
        "cumulative",
        {"v": {"ann": 7, "ben": 3}, "w": {"ann": 2, "ben": 8}},
        "one column a candidate",
        name="b.json",
    ),
    "orders of voters": Read(
        '{"rankings": {"v": ["ann", "ben"], "w": ["ben", "ann"]}}',
        "ranked",
        AB,
        "order in “ranking”, best first",
        name="b.json",
    ),
}


def written(folder, name, text):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def masses(source):
    found: dict[str, dict[str, Any]] = {}
    for voter, candidate, mass in source.ballots.select("voter", "candidate", "mass").iter_rows():
        found.setdefault(voter, {})[candidate] = mass
    return found


@pytest.mark.parametrize("case", NATURAL)
def test_a_natural_file_is_read_and_one_note_says_what_was_assumed(tmp_path, case):
    file = NATURAL[case]
    source = open_source(written(tmp_path, file.name, file.text), hints=file.hints)
    assert set(source.ballots["protocol"]) == {file.protocol}
    assert masses(source) == file.masses
    assumed = [note for note in source.notes if "was read as" in note]
    assert len(assumed) == 1
    assert file.words in assumed[0]


class Found(NamedTuple):
    """A file, and what is read of it: the protocol and the first ballot, or what is asked back."""

    text: str
    read: str
    name: str = "b.csv"


ROWS = [
    ("Name,1. Wahl,2. Wahl\nv,a,b\nw,b,a\n", "orders in the columns 1. Wahl, 2. Wahl"),
    ("voter,candidate,score\nv,a,4\nv,b,left early\nw,a,2\n", "'left early' for score is no"),
    ("Name,Motion 1,Motion 2\nv,Ja,Nein\nw,Ja,Ja\n", "one column a vote (Motion 1, Motion 2)"),
    ("Name,a,b\nv,for,against\nw,against,unclear\n", "'unclear' in “b” is neither for"),
    ("Item 1,Item 2\nfor,against\nfor,for\n", "one column a vote (Item 1, Item 2)"),
    ("view\nfor\nagainst\nfor\n", "votes in “view”"),
    ("House,a,b\n1,4,5\n2,4,1\n3,2,5\n4,9,3\n", "one column a candidate (a, b)"),
    ("Name,a,b,Remarks\nv,x,,\nw,,x,ok\n", "one column a candidate (a, b)"),
    (",Mon,Tue\nAl,OK,\nBo,OK,OK\n", "approval b Al Mon=1 Tue=0"),
    ("Mango > Peach\nPeach > Mango\n", "the first line may be a ballot, and no heading"),
    ("Ann: red\nBen: blue\n", "the first line may be a ballot, and no heading"),
    ("No.,Answer\n1,Yes\n2,No\n3,Yes\n4,Yes\n", "--map 'choice=Answer'"),
    (
        '3 1\n-2\n2 1 3 2 0\n1 2 0\n0\n"ann"\n"ben"\n"cid"\n"Board"\n',
        "ranked b 1 (1 of 2) ann=1 cid=0 b.blt was read as: withdrawn and in no order: ben",
        "b.blt",
    ),
    ('2 1\n2 1=2 0\n0\n"ann"\n"ben"\n', "no BLT file whose ballots are strict orders", "b.blt"),
    ('2 1\n1 3 0\n0\n"ann"\n"ben"\n"Title"\n', "names 3, and candidates are 1 to 2", "b.blt"),
    ('2 1\n-9\n1 2 0\n0\n"ann"\n"ben"\n', "names 9, and candidates are 1 to 2", "b.blt"),
    ('2 1\n1 2 0 1 0\n0\n"ann"\n"ben"\n', "names 0, and candidates are 1 to 2", "b.blt"),
    ("Player number,choice\n7,a\n7,b\n8,b\n", "simple b 1 a=1 b=0"),
    (
        "Respondent ID,Start,Which logo?,,,Source\n,,heron,kite,Other,Open-Ended\n"
        "101,9,heron,,,web\n102,10,,kite,,\n103,11,,,owl,web\n",
        "--map 'choice=Which logo?'",
    ),
    ("1 = ann\n2 = ben\n\nNo.;Candidate\n1;2\n2;1\n", "take out those above line 4"),
    ("choice,Other (write in)\nann,\nOther,cid\nOther,cid\n", "simple b 1 ann=1 cid=0"),
    ('choices\n"Heat, Amelie, or not"\nHeat\n"Amelie, or not"\n', "is one name, or two"),
    ("", "Save the sheet with the votes as CSV", "b.xlsx"),
    (
        "Timestamp,Rank [a],Rank [b]\n1,1st choice,2nd choice\n2,2nd choice,1st choice\n",
        "ranked b 1 a=1 b=0",
    ),
    (
        "Name;a;b\n(Schulnoten: 1 = sehr gut);;\nv;1;4\nw;2;2\n",
        "the lowest may be the best: (Schulnoten: 1 = sehr gut)",
    ),
    ("Name,a,b,c\nv,1,2,3\nw,2,1,\nu,1,3,\n", "has ranks from 1 with gaps, or scores"),
    (
        "Membership no.,Chair,Clerk\n12,a,c\n13,a,d\n19,b,c\n",
        "each is a vote: --map 'choice=Chair'",
    ),
    ("No.,Trip,Remarks\n1,Zoo,late\n2,Zoo,\n3,Sea,late\n", "perhaps: --map 'choice=Trip'"),
    (
        "Mitglied;Antrag 1;Antrag 2\nv;Ja;Nein\nw;Enthaltung;Ja\nu;Ja;abwesend\n",
        "simple Antrag 1 u Ja=1 b.csv",
    ),
    ("Member no.,Parks,Roads\n4,For,For\n7,Against,Abstain\n", "one column a vote (Parks"),
    ("Day,Parks,Roads\n1,For,For\n1,Against,Abstain\n", "--map 'choice=Parks' --map"),
    ("Ballot,a,b,c\n1,1,2,3\n2,2,1,\n3,1,,2\n", "ranked b 1 a=2 b=1 c=0"),
    (",Mon,Tue\nAl,OK,\nBo,OK,OK\nCount,2,1\n", "'Count' may be a voter, or what all"),
    ("Member,a,b,Remarks\nv,x,,late\nw,x,x,\nTOTAL,2,1,\n", "'TOTAL' may be a voter, or"),
    ("Option,Count\nJazz,17\nTotal,17\n", "b.csv, row 2: 'Total' may be a"),
    ("Who,Proxies held,Choice\nv,0,a\nw,3,b\n", "--map 'weight=Proxies held' (add 1 to"),
    ("Ballots,1st,2nd\n42,a,b\n26,b,a\n", "beside each choice in “1st”"),
    ("Student,Trip,choice\nAl,x,a\nBo,y,b\nAl,z,b\n", "--map 'voter=Student'; if each row"),
    ("voter;a;b\nv (Note 1-6);1,3;2\nw;2;1\n", "lowest may be the best: v (Note"),
    (
        '{"text": "?", "reactions": [{"name": "a", "count": 2, "users": ["v", "w"]}, '
        '{"name": "b", "count": 1, "users": ["w"]}, {"name": "c", "users": []}]}',
        "approval b v a=1 b=0 c=0",
        "b.json",
    ),
    (
        '{"judges": {"v": {"scores": {"a": 7, "b": 2}}, "w": {"scores": {"a": 6, "b": 3}}}}',
        "cumulative b v a=7 b=2",
        "b.json",
    ),
    (
        '{"candidates": {"A": "ann", "B": "ben"}, "ballots": '
        '[{"voter": "v", "ranking": ["B", "A"], "weight": 2}, {"voter": "w", "ranking": ["B"]}]}',
        "ranked b v (1 of 2) ann=0 ben=1",
        "b.json",
    ),
    ('{"a": ["v", "w"], "b": []}', "--map candidate=voter --map voter=list", "b.json"),
    (
        '{"pair_id": 1, "option_a": "a", "option_b": "b", "winner": "b"}\n'
        '{"pair_id": 2, "option_a": "c", "option_b": "b", "winner": "tie"}\n',
        "To count a row as a ballot for its winner: --map 'choice=winner'.",
        "b.jsonl",
    ),
    *(
        (f"voter,choice\nv,{word}\nw,ann\nu,ben\n", f"1 of “{word}”")
        for word in ("Abstención", "No vota", "k. A.", "weiß nicht", "Ne se prononce pas", "absent")
    ),
    ("voter,ann,ben\nv,7,k. A.\nw,5,9\n", "cells that give nothing by their words: 1 of"),
    ("# May\nvoter,choice\nv,a\n# w,b  <- left\nu,a\n", "in 2 of the lines; one choice"),
    ("#,Name,Vote\n1,Al,a\n2,Bo,b\n", "voter in “Name”, choice in “Vote”"),
    (
        "Email,choices\nanonymous,a;b;\nanonymous,b;c;\n",
        "a=1 b=1 c=0 b.csv was read as: approvals in “choices”",
    ),
    ('{"i": {"v": {"a": 3, "b": 5}, "w": {"a": 4, "b": 0}}}', "score i v a=3 b=5", "b.json"),
    ('[{"question": "q", "ballots": [{"voter": "v", "choice": "a"}]}]', "simple q v a=1", "b.json"),
    ('{"polls": [{"id": "p", "votes": {"v": "a", "w": "b"}}]}', "simple p v a=1 b=0", "b.json"),
    ('[["a", "b"], ["b", "a"]]', "cannot be read", "b.json"),
    (
        '[{"voter": "v", "ranking": ["a", "b"], "weight": 2}]',
        "ranked b v (1 of 2) a=1 b=0",
        "b.json",
    ),
    ('{"task_id": 1, "model": "v", "vote": "a"}', "simple 1 v a=1", "b.jsonl"),
    ('{"voter": "v", "points": {"a": 10, "b": 15}}', "cumulative b v a=10 b=15", "b.jsonl"),
    (
        '{"voter": "v", "approvals": []}\n{"voter": "w", "approvals": ["a"]}',
        "approval b v a=None",
        "b.jsonl",
    ),
    ("task,v,w\nt,X,Y\nu,Y,X\n", "simple t v X=1 Y=0"),
    ("v,w\nX,Y\nY,X\n", "simple row 1 v X=1 Y=0"),
    ("candidate,v,w\na,1,2\nb,2,1\n", "ranked b v a=1 b=0"),
    ("voter,candidate,position\nv,a,1\nv,b,2\nw,b,1\nw,a,2\n", "ranked b v a=1 b=0"),
    ("question,v,w\nq,a>b,b>a\nr,b>a,b>a\n", "ranked q v a=1 b=0"),
    ("n_voters,rank1,rank2\n2,X,Y\n1,Y,X\n", "ranked b 1 (1 of 2) X=1 Y=0"),
    ("count,ranking\n1,a>b\n1,b>a\n", "ranked b 1 a=1 b=0"),
    ("Timestamp,Rank [a],Rank [b]\n1,1st,2nd\n2,2nd,1st\n", "ranked b 1 a=1 b=0"),
    ("voter,a,b\nv,50%,50%\nw,100%,0%\n", "cumulative b v a=50 b=50"),
    ("voter;a;b\nv;33,3%;66,7%\n", "cumulative b v a=333 b=667"),
    ("voter,a,b\nv,5,3\nw,1,1\n", "score b v a=4 b=2"),
    ("voter,a,b\nv,-1,1\nw,1,1\n", "score b v a=0 b=2"),
    ("voter,choice,Weight\nv,a,0.5\nw,b,1\n", "simple b v (1 of 5) a=1 b=0"),
    ("# by me\nvoter,choice\nv,a\nw,b\n", "simple b v a=1 b=0"),
    ("poll,voter,pick\np,v,a\np,w,b\n", "simple p v a=1 b=0"),
    ("voter,choice\nv,Ann\nw,ann\n", "differ in case"),
    ("voter,choice\nv,Ann\nw,Ann \n", "simple b v Ann=1"),
    ("voter,choice\nv,N/A\nw,a\n", "simple b v a=None"),
    ("voter,a,b\nv,N/A,N/A\nw,1,0\n", "simple b v a=None b=None"),
    ("voter,a,b\nv,yes,no\nw,Yes,Yes\n", "approval b v a=1 b=0"),
    ("voter,a,b\nv,TRUE,FALSE\nw,TRUE,TRUE\n", "approval b v a=1 b=0"),
    ("voter,a,b\nv,1,0\nTotal,1,0\n", "may be a voter, or what all others add up to"),
    ("voter,a,b,at\nv,1,0,Rome\nw,1,0,Total\n", "row 2: 'Total' may be a voter"),
    ("voter,a,b,at\nv,1,0,Total\nw,1,0,Rome\n", "not used: at"),
    ("Who,a,b\nv,1,4\nw,2,3\nMoyenne,1.5,3.5\n", "or what all others add up to"),
    ("Who,a,b\nv,1,4\nw,2,3\nΣ,3,7\n", "row 3: the row has the sums of all others"),
    ("Who,a,b\nv,1,0\nw,0,1\nu,1,1\n", "approval b 1 a=1 b=0"),
    ("Unit,a,b\nMedia,1,0\nArt,0,1\nMedia,1,1\n", "approval b 1 a=1 b=0"),
    ("Unit,a,b\nMedia,1,0\nArt,0,1\nLaw,1,1\n", "approval b 1 a=1 b=0"),
    ("voter,a,b\nv,4,2\nw,-,5\n", "score b v a=2 b=0"),
    ("voter,a,b\nv,4,-\nw,3,–\n", "score b v a=1"),
    ("voter,a,b\nv,x,-\nw,x,x\n", "approval b v a=1 b=0"),
    ("voter,a,b,c\nv,4,2,x\nw,3,1,5\n", "row 1: 'x' for c is no number"),
    ("voter,a,b,c\nv,x,,(x)\nw,x,x,\n", "row 1: '(x)' for c is no number"),
    ("voter,a,b,note\nv,4,2,ill\nw,3,1,\n", "not used: note"),
    ("voter,a,b\nv,yes,abstain\nw,no,yes\n", "by their words: 1 of “abstain”"),
    ("sep=;\nvoter;a;b\nv;4;2\nw;3;1\n", "score b v a=3 b=1"),
    ("sep=;\nvoter;a;b\nv;4;2;1\nw;3;1\n", "line 2 has 4 cells, and the heading names 3"),
    ("Poll\nvoter,a,b\nv,4,2\n", "line 2 has 3 cells, and the heading names 1"),
    ("Poll,,\nvoter,a,b\nv,4,2\n", "its first line names 1 of 3 columns: Poll"),
    ("voter,choice,,\nv,a,,\nw,b,,\n", "simple b v a=1 b=0"),
    (
        'id,a,b\nid,a?,b?\n"{""ImportId"":""x""}","{""ImportId"":""y""}",\n1,1,2\n',
        "two more rows of headings",
    ),
    ("id,a,b\n1,Strongly agree,Agree\n2,Agree,Strongly agree\n", "words of a scale"),
    ("id,a,b\n1,5 - best,2 - poor\n2,2 - poor,5 - best\n", "words of a scale"),
    ("voter,Duration (in seconds),a,b\nv,70,4,2\nw,80,3,1\n", "score b v a=3 b=1"),
    ("judge,a,b,Average\nv,4,2,3\nw,3,1,2\n", "score b v a=3 b=1"),
    ("Dish,v,w,Average\na,4,2,3\nb,3,1,2\n", "--map 'candidate=Dish'; if columns"),
    ("Name,v,w,x,Mean\na,4,2,1,2.3\nb,3,1,1,1.7\n", "--candidates 'v,w,x'."),
    ("Dish,v,w,Schnitt\na,4,2,3\nb,3,1,2\n", "“Schnitt” sums up what stands"),
    ("Dish,v,w,Total\na,4,2,6\nb,3,1,4\n", "rows may be voters or candidates"),
    ("Name,v,w,Total\na,4,2,6\nb,5,1,6\n", "cumulative b a v=4 w=2"),
    ("Name,v,w,Average\na,4,2,5\nb,3,1,4\n", "score b a v=3 w=1"),
    ("v,w,Total\n4,2,6\n3,1,4\n", "score b 1 v=3 w=1"),
    ("candidate,v,w,Average rank\na,1,2,1.5\nb,2,1,1.5\n", "ranked b v a=1 b=0"),
    ("item,Judge 1,Judge 2\na,1,2\nb,2,1\n", "may be voters or candidates"),
    ("motion,For,Against\nm,12,5\nn,8,9\n", "count voters, and are no ballots"),
    ("candidate,votes\na,12\nb,5\n", "--map 'choice=candidate' --map 'weight=votes'"),
    ("choice,count\na,12\nTotal,12\n", "'Total' may be a candidate, or what all"),
    ("voter,a,b\nv,4,2\nw,3,1\nNote: all in time,,\n", "or a note below the ballots"),
    ("# in June\n# 3 = best\nvoter,a,b,c\nv,3,2,1\nw,1,3,2\n", "may say which: # 3 = best"),
    ("voter,a,b\nv,1,99\nw,3,2\n", "99 may be a score, or stand for no answer"),
    ("district,a,b\nv,12345,40\nw,7,900\n", "such as --scale 0,12345; of counted"),
    ("voter,candidate,score\nv,a,101\nv,b,-3\n", "up to 101 may be scores, or"),
    ("voter,candidate,score\nv,a,100\nv,b,-3\n", "score b v a="),
    ("voter,a,b\nv,5,9\nw,9,2\n", "9 may be a score, or stand for no answer"),
    ("voter,a,b\nv,8,9\nw,9,2\n", "score b v a="),
    ("id,Pick[1],Pick[2]\n1,a,b\n2,b,a\n", "may be places or voters"),
    (",a,b\n0,1,0\n1,0,1\n", "simple b 1 a=1 b=0"),
    ("shareholder,shares,choice\nv,2,a\nw,1,b\n", "simple b v (1 of 2) a=1 b=0"),
    ("date,member,vote\n1,v,a\n1,w,b\n2,v,b\n2,w,b\n", "--map episode_id=COLUMN"),
    ("Wer,Stimmen,Wahl\nv,3,Ja\nw,2,Nein\n", "yes and no stand in Wahl, and numbers in S"),
    ("Name,Mo,Di\nv,OK,\nw,OK,OK\n", "approval b v Di=0 Mo=1"),
    ("Name,Mo,Di\nv,Yes,(Yes)\nw,No,Yes\nu,Yes,No\n", "'(Yes)' for Di is no number"),
    ("Wer,Prima scelta,Seconda scelta\nv,a,b\nw,b,a\n", "ranked b 1 a=1 b=0"),
    ("judge,Gold,Silver\nv,a,b\nw,b,a\n", "ranked b v a=1 b=0"),
    ("n,model_a,model_b,winner\n1,a,b,model_a\n2,b,c,tie\n", "“winner” names the columns"),
    ("judge,a,b\n1,Agree,Strongly agree\n2,Agree,Agree\n", "words of a scale"),
    ("voter,film,stars\nv,a,5\nv,b,3\nw,a,4\n", "'candidate=film' --map 'mass=stars'"),
    ("Wen,Zahl\na,12\nb,5\na,3\n", "--map 'choice=Wen' --map 'weight=Zahl'"),
    ("ann,ben,cid\nben,cid,ben\ncid,ann,ann\n", "simple row 1 ann ben=1"),
    ("id,a,b\n1,8:30 am,9:00 am\n2,9:00 am,8:30 am\n", "simple row 1 a 8:30 am=1"),
    ("id,wing,a,b\n1,N,4,2\n2,S,3,1\n3,N,3,2\n", "score b 1 a=3 b=1"),
    ("judge,note\n1,very good talk\n2,\n", "lacks the columns"),
    ("voter,choice\nv,blanco\nw,-\nu,a\n", "1 of “blanco”, 1 of “-”"),
    ("voter,song,rank\nv,a,1\nv,b,2\nw,b,1\nw,a,2\n", "--map 'candidate=song'"),
    ("resp_id,vote_intention,region\n11,a,E\n12,b,S\n13,a,E\n", "'choice=vote_intention'"),
    ('[{"user": {"id": 7, "name": "v"}, "choice": "a"}]', "simple b v a=1", "b.json"),
    ('{"a>b": 2, "b>a": 1}', "ranked b 1 (1 of 2) a=1 b=0", "b.json"),
    ("voter,rank1,rank2\nv,a,a\nw,a,b\n", "an order names a candidate twice: a"),
    ("voter,weight,choice\nv,-1,a\nw,1,b\n", "'-1' in “weight” is no weight"),
    ("Wer,Wen\nv,a\nw,b\nu,a\n", "--map 'choice=Wen' --map 'voter=Wer'"),
    ("Wer,Tage\nv,a; b\nw,b; a\n", "--map 'approvals=Tage' --map 'voter=Wer'"),
    ("Wer,Wen,Platz\nv,a,1\nv,b,2\nw,a,2\nw,b,1\n", "--map 'rank=Platz'\nThree lines"),
    ("count;ranking\n1.200;a>b\n900;b>a\n", "may have a sign that parts thousands"),
    ("count,ranking\n1.25,a>b\n1,b>a\n", "ranked b 1 (1 of 125) a=1 b=0"),
    ("candidate,votes\na,10\nb,7\n", "lacks the column voter"),
    ('voter,choice\nv,"a, b"\nw,a\n', "is one choice, or several"),
    ('voter,choice\nv,"a, b"\nw,"c, d"\n', "simple b v a, b=1 c, d=0"),
    ("voter,choice\nv,a\nv,b\n", "has a second ballot in one vote"),
    ("voter,winner,loser\nv,a,b\n", "lacks the columns"),
    ("voter,a,b\nv,8/10,5/10\n", "lacks the columns"),
    ("voter,a,b\nv,agree,disagree\n", "lacks the columns"),
    ("voter,option,rank\nv,a,1\nv,b,2\n", "ranked b v a=1 b=0"),
    ("phase,voter,choice\nbefore,v,a\nafter,v,b\n", "simple b v a=0 b=1"),
    ("voter,a,b,c\nv,1,2,NA\nw,1,2,3\n", "ranked b v a=2 b=1 c=None"),
    (" Voter , Choice \nv,a\n", "simple b v a=1"),
    ("voter,a,b,c\nv,1,1,2\nw,2,1,1\n", "several candidates in one place, or points"),
    ("voter,a,b,c\nv,1,1,3\nw,1,2,2\n", "several candidates in one place, or points"),
    ("voter,a,b,c\nv,1,2,3\nw,1,2.5,2.5\n", "several candidates in one place, or points"),
    ("voter,a,b\nv,1,1\nw,1,1\n", "approval b v a=1 b=1"),
    ("voter,a,b,c\nv,2,1,0\nw,0,2,1\n", "Borda points, or ranks from 0"),
    ("candidate,v,w\na,0,1\nb,2,0\nc,1,2\n", "Borda points, or ranks from 0"),
    ("voter,ranking\nv,a -> b -> c\nw,b → a → c\n", "ranked b v a=2 b=1 c=0"),
    ("voter,ranking\nv,a/b/c\nw,b/a/c\n", "is one name, or an order of several"),
    ("voter,ranking\nv,1. a 2. b\nw,1. b 2. a\n", "is one name, or an order of several"),
    ("voter,ranking\nv,ann\nw,ben\n", "ranked b v ann=1 ben=None"),
    ("voter,rank 1,rank 2\nv,10,20\nw,20,10\n", "hold numbers"),
    ("voter,1,2,3\nv,1,2,3\nw,3,1,2\n", "hold numbers"),
    ("voter,1,2,3\nv,1,0,0\nw,1,1,0\n", "approval b v 1=1 2=0 3=0"),
    ("ranking,votes\na>b,2\nb>a,1\n", "ranked b 1 (1 of 2) a=1 b=0"),
    ("rank,v,w\n1,a,b\n2,b,a\n", "has a column “rank” beside columns of names"),
    ("voter,choice\nv,a\nvoter,choice\nw,b\n", "row 2: the row repeats the heading"),
    (
        '{"voter":"v","ranking":["a","b"]}\n{"voter":"w","choice":"a"}\n',
        "row 2: “ranking” is empty and “choice” is not",
        "b.jsonl",
    ),
    ("voter,a,b\nv,4,2\nw,3,1\n(in June),,\n", "only the remark (in June) was passed"),
    ("voter,response\nv,I take A\nw,B it is\nx,Vote: A\ny,B too\n", "has raw replies"),
    ("voter,response\nv,ann\nw,ben\nx,ann\ny,ann\n", "--map 'choice=response'"),
    ("voter,response\nv,ann\nw,ben\nx,ann\n", "has raw replies"),
]
FOUND = [Found(*row) for row in ROWS]
NOTED = [
    (
        ",choice,weight\n1,a,0\n2,b,1\n3,a,2\n",
        "2 ballots count as those of 3 voters; 1 of weight 0 count for nobody",
    ),
    (",choice,weight\n1,a,0\n2,b,1\n", "not used: one without a name"),
    ("voter,ranking,choice,score\nv,a>b,a,3\nw,b>a,b,4\n", "not used: choice, score"),
    ("voter,choice\nv,\nw,none\nx,a\n", "2 of the ballots had no mark and count as abstentions"),
]


@pytest.mark.parametrize(("text", "read", "name"), [*FOUND, *(Found(*row) for row in NOTED)])
def test_found_ballots_are_read_or_asked_about(tmp_path, text, read, name):
    assert read in reading_of(written(tmp_path, name, text))


@pytest.mark.parametrize("stage", ["vote_final", "final"])
def test_a_file_in_columns_of_ours_assumes_nothing_and_an_abstention_is_its_own(tmp_path, stage):
    cast = [f"e,1,{stage},simple,{row}" for row in ("v,a,1", "v,b,0", "w,a,", "w,b,")]
    text = "\n".join(["episode_id,turn,stage,protocol,voter,candidate,mass", *cast, ""])
    source = open_source(written(tmp_path, "b.csv", text))
    assert (source.notes, source.files[0].shape) == ((), "long")


@pytest.mark.parametrize("cells", ["v,1,4\nw,?,5", "v,x,x\nw,maybe,", "v,1,4\nw,x,5"])
def test_a_cell_that_is_no_number_is_refused_in_a_column_that_is_named(tmp_path, cells):
    file = written(tmp_path, "b.csv", f"voter,a,b\n{cells}\n")
    said = reading_of(file, Hints(candidates=("a", "b")))
    assert "for a is no number." in said
    assert "row 2" in said


def reading_of(file, hints=NO_HINTS):
    """Protocol, first ballot and notes of a file; or all that its error says."""
    try:
        source = open_source(file, hints=hints)
    except (BallotFileError, UsageError) as asked:
        return f"{asked.what} {asked.why} {asked.hint}"
    frame = source.ballots.filter(stage="vote_final")
    episode, voter = frame["episode_id"][0], frame["voter"][0]
    own = frame.filter(episode_id=episode, voter=voter).sort("candidate")
    masses = [f"{c}={mass}" for c, mass in own.select("candidate", "mass").rows()]
    return " ".join((frame["protocol"][0], episode, voter, *masses, *source.notes))


def test_several_columns_of_choices_are_a_vote_each_where_somebody_says_so(tmp_path):
    file = written(tmp_path, "b.csv", "Name,Chair,Vote\nv,ann,cid\nw,ben,\n")
    votes = open_source(file, hints=Hints(votes=("Chair", "Vote"))).ballots
    assert votes["episode_id"].unique().sort().to_list() == ["Chair", "Vote"]
    assert votes.filter(episode_id="Vote", candidate="cid")["mass"].to_list() == [1, None]


def test_scores_of_which_the_lowest_is_the_best_are_turned_round(tmp_path):
    file = written(tmp_path, "b.csv", "voter,ann,ben\nv,1,4\nw,2,3\n")
    source = open_source(file, hints=Hints(protocol="score", scale=(6, 1)))
    assert masses(source) == {"v": {"ann": 5, "ben": 2}, "w": {"ann": 4, "ben": 3}}
    assert source.low_is_best
    assert "a scale from 6 to 1, the best, counted from 0" in source.notes[0]


def test_numbers_from_zero_are_read_as_borda_points_where_somebody_says_so(tmp_path):
    file = written(tmp_path, "b.csv", "voter,a,b,c\nv,2,1,0\nw,0,2,1\n")
    source = open_source(file, hints=Hints(protocol="borda"))
    assert masses(source) == {"v": {"a": 2, "b": 1, "c": 0}, "w": {"a": 0, "b": 2, "c": 1}}


@pytest.mark.parametrize(
    ("encoding", "noted"),
    [("utf-16", "its text is UTF-16"), ("utf-8-sig", ""), ("cp1252", "Windows-1252")],
)
def test_text_in_other_encodings_is_read_and_what_is_no_utf_8_is_noted(tmp_path, encoding, noted):
    file = tmp_path / "b.csv"
    file.write_bytes("voter,choice\nv,Jürgen\nw,ben\n".encode(encoding))
    source = open_source(file)
    assert masses(source) == {"v": {"Jürgen": 1, "ben": 0}, "w": {"Jürgen": 0, "ben": 1}}
    words = ("its text is UTF-16", "Windows-1252")
    assert [one for one in words if one in source.notes[0]] == ([noted] if noted else [])


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_is_opened_as_a_file_is(library):
    frames = pytest.importorskip(library)
    rows = {"voter": ["v", "w", "x"], "ann": [1, 0, None], "ben": [0, 1, None]}
    run = tutorsim.open(frames.DataFrame(rows))
    assert masses(run.source) == AB | {"x": NOBODY}
    assert masses(run.source)["x"]["ann"] is None
    with pytest.raises(UsageError, match="cannot be opened"):
        tutorsim.open([1, 2])  # type: ignore[arg-type]


STAND = {
    "named by the ballots of each vote": (Hints(), {"p": {"a", "b"}, "q": {"b", "c"}}),
    "said for all votes": (
        Hints(candidates=("a", "b", "c")),
        {"p": {"a", "b", "c"}, "q": {"a", "b", "c"}},
    ),
    "listed in a column": (
        Hints(candidates=("standing",)),
        {"p": {"a", "b", "d"}, "q": {"b", "c"}},
    ),
    "said for each vote": (
        Hints(candidates_of={"p": ("a", "b"), "q": ("b", "c", "e")}),
        {"p": {"a", "b"}, "q": {"b", "c", "e"}},
    ),
}


@pytest.mark.parametrize("case", STAND)
@pytest.mark.parametrize("shape", ["choice", "ranking", "rows"])
def test_candidates_belong_to_a_vote_unless_somebody_says_who_stands(tmp_path, case, shape):
    hints, expected = STAND[case]
    lines = ["p,v,a,a;d;b", "p,w,b,", "q,v,b,b;c", "q,w,c,"]
    named = "candidate" if shape == "rows" else shape
    heading = f"poll,voter,{named},standing"
    if shape == "rows":
        heading, lines = f"{heading},rank", [f"{x},1" for x in lines]
    file = written(tmp_path, "b.csv", "\n".join([heading, *lines]))
    if case == "said for each vote":
        said = written(tmp_path, "c.csv", "poll,candidate\np,a\np,b\nq,b\nq,c\nq,e\n")
        assert read_candidates(said) == hints.candidates_of
        listed = written(tmp_path, "c.txt", "\n b \na\n\nb\n")
        assert read_candidates(listed) == ("b", "a")
    found: dict[str, set[str]] = {}
    ballots = open_source(file, hints=hints).ballots
    for episode, candidate in ballots.select("episode_id", "candidate").iter_rows():
        found.setdefault(episode, set()).add(candidate)
    assert found == expected


def test_stages_by_other_names_are_told_apart(tmp_path):
    text = "voter,phase,choice\nv,before,ann\nw,before,ben\nv,after,ben\nw,after,ben\n"
    source = open_source(written(tmp_path, "b.csv", text))
    assert set(source.ballots["stage"]) == {"vote_initial", "vote_final"}
    text = text.replace("before", "Runde 1").replace("after", "Runde 2")
    file = written(tmp_path, "b.csv", text)
    with pytest.raises(BallotFileError, match="unknown stage 'Runde 1'") as refused:
        open_source(file)
    assert "--stage" in refused.value.hint
    hints = Hints(stages={"initial": "Runde 1", "final": "Runde 2"})
    assert set(open_source(file, hints=hints).ballots["stage"]) == {"vote_initial", "vote_final"}


def test_a_stated_scale_says_that_large_numbers_are_scores(tmp_path):
    file = written(tmp_path, "b.csv", "voter,a,b\nv,340,0\nw,20,110\n")
    assert open_source(file, hints=Hints(scale=(0, 340))).top == 340


REFUSED = {
    "nothing of a ballot": Refused("voter,comment\nv,hello\n", "lacks the columns candidate"),
    "no voter in rows": Refused(
        "candidate,mass,protocol\nann,1,simple\n", "lacks the column voter"
    ),
    "scores beside the scale": Refused(
        "voter,ann,ben\nv,3,3\nw,5,0\n",
        "row 2: the score 5 is not on the scale from 0 to 4",
        hints=Hints(scale=(0, 4)),
    ),
    "a stranger": Refused(
        "voter,ranking\nv,ann>ben\nw,dan\n",
        "row 2: 'dan' is none of the candidates",
        hints=Hints(candidates=("ann", "ben")),
    ),
    "an order with one twice": Refused(
        "voter,ranking\nv,ann>ben\nw,ann>ann\n", "row 2: an order names a candidate twice"
    ),
    "rows of ranks called masses": Refused(
        "voter,candidate,mass,protocol\nv,ann,1,ranked\nv,ben,2,ranked\n",
        "row 1: the ranking of 'v' has a hole: its masses are not 1 to 0",
    ),
    "replies without a protocol": Refused("voter,reply\nv,A\n", "has raw replies"),
    "replies without candidates": Refused(
        "voter,reply\nv,A\n",
        "nothing says what their labels stand for",
        hints=Hints(protocol="simple"),
    ),
    "weights of none": Refused(
        "voter,choice,weight\nv,ann,\nw,ben,1\n", "is no weight of a ballot"
    ),
    "abstain with numbers": Refused(
        "voter,ann,ben,abstain\nv,1,0,0\nw,0,0,1\n", "'abstain' has numbers"
    ),
    "abstain in a list": Refused(
        "voter,ranking\nv,ann>none\nw,ben>ann\n", "'none' stands beside names"
    ),
    "names in three cases": Refused(
        "voter,choice\nv,Red\nw,RED\nx,red\n",
        "'RED', 'Red', 'red' differ in case",
        error=UsageError,
    ),
    "names in two codings": Refused(
        "voter,choice\nv,Zo\u00eb\nw,Zoe\u0308\n",
        r"'Zoe\u0308', 'Zoë' differ in case or spaces alone, or in how the same letters",
        error=UsageError,
    ),
    "two in one place": Refused(
        "voter,ranking\nv,ann > ben = cid\nw,ben > ann > cid\n",
        "'ben = cid' puts several candidates in one place",
        error=UsageError,
    ),
    "two in one place of JSON": Refused(
        '[{"voter": "v", "ranking": ["ann", "ben"]}, {"voter": "w", "ranking": [["ann", "ben"]]}]',
        "several candidates in one place",
        name="b.json",
        error=UsageError,
    ),
    "names with blanks in rows": Refused(
        "voter,candidate,mass\nv,red,1\nv,blue,0\nw,red ,0\nw,blue,1\n",
        "differ in case or spaces",
        error=UsageError,
    ),
    "voters in two cases": Refused(
        "voter,candidate,mass\nAnn,red,1\nann,blue,1\n", "The voters 'Ann', 'ann'", error=UsageError
    ),
    "commas in names or lists": Refused(
        'voter,approves\nv,"Smith, John; Doe, Jane"\nw,"Roe, Jim"\n',
        "is a list of names, or one name",
        error=UsageError,
    ),
    "one column a voter": Refused("question,v,w\nq1,ann,ben\n", "lacks the columns"),
    "points beside columns of candidates": Refused(
        "voter,points,ann,ben\nv,0.1,1,0\nw,0.2,0,1\n",
        "the columns points, ann, ben would all be mass",
    ),
    "a column of ours beside the one that is named for it": Refused(
        "voter,name,choice\nv,Ann,x\nw,Ben,y\n",
        "the columns name, voter would all be voter",
        hints=Hints(columns={"voter": "name"}),
    ),
    "candidates beside options with their voters": Refused(
        '[{"text": "a", "candidate": "z", "voters": ["v"]}]',
        "the columns text, candidate would all be candidate",
        name="b.json",
    ),
    "a weight that is too large for a number": Refused(
        "count,ranking\n2,a>b\n1e400,b>a\n", "row 2: '1e400' in “count” is no weight of a ballot"
    ),
    "masses without a number": Refused(
        "Name,Motion 1,mass\nv,,\n", "lacks the columns candidate, protocol"
    ),
    "an old end of line in a row with too many cells": Refused(
        "voter,ann\nv,1\rw,0,0,1\n", "cannot be read as ballots"
    ),
    "thousands": Refused(
        "voter\tann\tben\nv\t1,000\t2\nw\t2\t1,000\n", "'1,000' for ann is no number", name="b.tsv"
    ),
    "lists of voters": Refused(
        '{"v": ["ann", "ben"], "w": ["ben", "ann"]}', "may be an order or a set", name="b.json"
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_what_is_missed_and_what_to_do(tmp_path, case):
    file = REFUSED[case]
    with pytest.raises(file.error) as refused:
        open_source(written(tmp_path, file.name, file.text), hints=file.hints)
    assert file.words in refused.value.what
    assert refused.value.why
    assert refused.value.hint


def test_a_missing_column_is_refused_with_three_lines_to_copy(tmp_path):
    with pytest.raises(BallotFileError) as refused:
        open_source(written(tmp_path, "b.csv", "voter,comment\nv,hello\n"))
    lines = refused.value.hint.splitlines()
    example = "\n".join(line.strip() for line in lines[1:4])
    assert example.startswith("voter,")
    assert masses(open_source(written(tmp_path, "c.csv", example + "\n")))


def test_a_second_ballot_is_refused_with_a_way_to_name_the_vote(tmp_path):
    """What was voted on stands under a name that is not known."""
    file = written(tmp_path, "b.csv", "matter,voter,ann,ben\np,v,1,0\nq,v,0,1\n")
    with pytest.raises(BallotFileError, match="second ballot") as refused:
        open_source(file)
    assert "--map episode_id=" in refused.value.hint
    hints = Hints(columns={"episode_id": "matter"})
    assert set(open_source(file, hints=hints).ballots["episode_id"]) == {"p", "q"}


@pytest.mark.parametrize("word", ["question", "debate_id", "Item"])
def test_what_was_voted_on_has_several_names(tmp_path, word):
    file = written(tmp_path, "b.csv", f"{word},user,ann,ben\np,v,1,0\nq,v,0,1\n")
    assert set(open_source(file).ballots["episode_id"]) == {"p", "q"}
    assert set(open_source(file).ballots["voter"]) == {"v"}


def test_a_hint_that_names_no_column_is_refused(tmp_path):
    file = written(tmp_path, "b.csv", "voter,choice\nv,ann\n")
    with pytest.raises(UsageError, match="no column 'Wähler'"):
        open_source(file, hints=Hints(columns={"voter": "Wähler"}))
    with pytest.raises(UsageError, match="'dice' is no protocol"):
        open_source(file, hints=Hints(protocol="dice"))


@pytest.mark.parametrize(
    ("second", "told"), [("e2,v,b\ne2,w,b\n", True), ("e2,v,b\ne2,w,a\n", False)]
)
def test_votes_whose_ballots_name_others_are_told(tmp_path, second, told):
    """A candidate without a vote does not stand in it, unless somebody says so."""
    file = tmp_path / "b.csv"
    file.write_text(f"episode_id,voter,choice\ne1,v,a\ne1,w,b\n{second}", encoding="utf-8")
    note = "in each vote those stand whom its ballots name"
    assert any(one.startswith(note) for one in lay_out(file).assumed) is told
    named = lay_out(file, Hints(candidates=("a", "b")))
    assert not any(one.startswith(note) for one in named.assumed)


@pytest.mark.parametrize("word", ["undervote", "overvote", "Bulletin blanc", "ungültig", "棄権"])
def test_words_for_a_spoilt_or_blank_place_are_abstentions_and_told(tmp_path, word):
    file = tmp_path / "f.csv"
    file.write_text(f"ballot,Rank 1,Rank 2\n1,Ng,Park\n2,{word},{word}\n3,Park,{word}\n")
    laid = lay_out(file)
    assert set(laid.frame["candidate"]) == {"Ng", "Park"}
    assert f"abstentions by their words: 3 of “{word}”" in laid.assumed
