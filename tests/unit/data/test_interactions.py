"""Interactions: the formats of MovieLens and RecBole, tables, order in time, what is held back, what is said."""

import gzip
import json

import pytest

from orrery.data.batches.histories import asked_at_mask, asked_behind, numbers_of
from orrery.data.readers.interactions import Interaction, read_interactions
from orrery.data.readers.item_texts import read_item_texts
from orrery.data.rows.histories import histories, shown, spelt
from orrery.data.sources import BatchRequest
from orrery.data.sources.interactions import InteractionSettings, InteractionSource
from orrery.errors import DataError
from orrery.text.special import train_framed

ROWS = [("1", "10", 978300760.0), ("1", "11", 978300761.0), ("2", "10", 978300762.0)]
FILES = {
    "ratings.dat": "1::10::5::978300760\n1::11::3::978300761\n2::10::4::978300762\n",
    "u.data": "1\t10\t5\t978300760\n1\t11\t3\t978300761\n2\t10\t4\t978300762\n",
    "ratings.csv": "userId,movieId,rating,timestamp\n1,10,5.0,978300760\n1,11,3.0,978300761\n2,10,4.0,978300762\n",
    "ml.inter": "user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
    "1\t10\t5\t978300760\n1\t11\t3\t978300761\n2\t10\t4\t978300762\n",
    "acts.jsonl": '{"user": 1, "item": 10.0, "time": "2000-12-31T22:12:40Z"}\n'
    '{"user": 1, "item": 11, "time": 978300761}\n{"user": 2, "item": "10", "time": "978300762"}\n',
    "sasrec.txt": "1 10\n1 11\n2 10\n",
    "acts.tsv": "user\titem\ttime\n1\t10\t978300760\n1\t11\t978300761\n2\t10\t978300762\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_actions(tmp_path, name):
    (tmp_path / name).write_text(FILES[name])
    timed = [each._replace(time=None) if name == "sasrec.txt" else each for each in map(Interaction._make, ROWS)]
    assert list(read_interactions(tmp_path / name, {})) == timed


def test_compressed_files_are_known_by_the_name_below(tmp_path):
    (tmp_path / "ratings.dat.gz").write_bytes(gzip.compress(FILES["ratings.dat"].encode()))
    assert list(read_interactions(tmp_path / "ratings.dat.gz", {})) == ROWS


def test_columns_are_found_asked_for_or_told_of(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("who,what,when\nada,a  book,3\n")
    asked = {"user": "who", "item": "what", "time": "when"}
    assert list(read_interactions(file, asked)) == [("ada", "a book", 3.0)]
    assert list(read_interactions(file, {**asked, "time": None})) == [("ada", "a book", None)]
    with pytest.raises(DataError, match="no column is known to hold the user among who, what, when") as error:
        list(read_interactions(file, {}))
    assert "--data.user" in error.value.hint
    with pytest.raises(DataError, match="no column 'whom'"):
        list(read_interactions(file, {**asked, "user": "whom"}))


@pytest.mark.parametrize(
    ("line", "told"),
    [("1::", "item is empty"), ("::2::3::4", "user is empty"), ("1::2::3::soon", "'soon', no time"),
     ("1::2::3", "no time"), ("1::2::3::nan", "no time")],
)  # fmt: skip
def test_a_bad_line_is_named_or_left_out(tmp_path, line, told):
    file = tmp_path / "ratings.dat"
    file.write_text(f"1::10::5::1\n{line}\n")
    with pytest.raises(DataError, match=f"ratings.dat:2.*{told}"):
        list(read_interactions(file, {}))
    assert len(list(read_interactions(file, {}, skip_bad=1))) == 1


def test_texts_of_items_come_from_movielens_recbole_and_tables(tmp_path):
    files = {
        "movies.dat": "1::Toy Story (1995)::Animation|Comedy\n2::Misérables, Les (1995)::Drama\n".encode("latin-1"),
        "u.item": b"1|Toy Story (1995)|01-Jan-1995||http://|0|0|0|1|0|1|0|0|0|0|0|0|0|0|0|0|0|0|0\n",
        "ml.item": b"item_id:token\tmovie_title:token_seq\tgenre:token_seq\n1\tToy Story (1995)\tAnimation Comedy\n",
        "movies.csv": b"movieId,title,genres\n1,Toy Story (1995),Animation|Comedy\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        assert read_item_texts(tmp_path / name)["1"] == "Toy Story (1995) Animation Comedy", name
    assert read_item_texts(tmp_path / "movies.dat")["2"] == "Misérables, Les (1995) Drama"


def test_texts_of_items_without_a_text_or_an_item_are_refused(tmp_path):
    file = tmp_path / "items.csv"
    file.write_text("item,price\n1,2\n")
    with pytest.raises(DataError, match="no column is known to hold a text"):
        read_item_texts(file)
    file.write_text("thing,title\n1,2\n")
    with pytest.raises(DataError, match="no column holds the item"):
        read_item_texts(file)


def test_histories_follow_time_and_equal_times_the_file():
    acts = [("a", "x", 2.0), ("b", "y", 1.0), ("a", "z", 1.0), ("a", "w", 2.0)]
    first, second = histories(Interaction(*one) for one in acts)
    assert first.items == ("z", "x", "w")
    assert first.equal_times == 1
    assert first.learned == ("z",)
    assert second.learned == ("y",)


def test_the_core_is_what_is_left_when_nothing_more_falls_out():
    # i3 has two actions until u3 falls out for having one.
    acts = [("u1", "i1"), ("u1", "i2"), ("u2", "i1"), ("u2", "i2"), ("u2", "i3"), ("u3", "i3")]
    found = histories([Interaction(*one, None) for one in acts], core=2)
    assert {each.user: each.items for each in found} == {"u1": ("i1", "i2"), "u2": ("i1", "i2")}


def written(tmp_path, histories_of, **settings):
    """A source of histories that are given as words."""
    lines = [f"u{n},{item},{t}" for n, text in enumerate(histories_of) for t, item in enumerate(text.split())]
    (tmp_path / "acts.csv").write_text("user,item,time\n" + "\n".join(lines) + "\n")
    return InteractionSource.read(InteractionSettings(train=str(tmp_path / "acts.csv"), **settings))


def test_what_is_odd_about_the_data_is_said(tmp_path):
    said = "\n".join(written(tmp_path, ["a b c a", "a b", "b c new"]).remarks())
    assert "3 users, 4 items, 9 actions" in said
    assert "1 users have fewer than 3 actions" in said
    assert "1 of 2 items that are scored on are in no history" in said
    assert "1 of 2 items that are scored on had been taken by the user before" in said
    (tmp_path / "equal.csv").write_text("user,item,time\nu,a,1\nu,b,1\nu,c,1\n")
    equal = InteractionSource.read(InteractionSettings(train=str(tmp_path / "equal.csv")))
    assert any("2 of 3 actions have the time of the one before, 1 of 1" in one for one in equal.remarks())
    (tmp_path / "none.csv").write_text("user,item\nu,a\nu,b\nu,c\n")
    none = InteractionSource.read(InteractionSettings(train=str(tmp_path / "none.csv")))
    assert any("there are no times" in one for one in none.remarks())


def test_one_user_one_item_and_too_short_histories(tmp_path):
    one = written(tmp_path, ["a a a a"])
    assert len(one.held_back) == 1
    assert one.items == ["a"]
    with pytest.raises(DataError, match="no user has 3 actions or more, so nothing can be held back"):
        written(tmp_path, ["a b", "c"])
    with pytest.raises(DataError, match="of users and items with 9 each"):
        written(tmp_path, ["a b c d"], core=9)


def asked(source, kind, frame=None, length=4):
    tokenizer = train_framed("word", source.texts(), None, frame)
    request = BatchRequest(kind, length, 2, 1, tokenizer)
    return tokenizer, source.examples(request)


def test_shifted_batches_hold_the_newest_items_and_hide_the_last_two(tmp_path):
    source = written(tmp_path, ["a b c d e f g h", "b c d e"])
    tokenizer, found = asked(source, "shifted")
    rows = set()
    for batch in map(found.train.batch, range(4)):
        rows |= {tuple(ids[real].tolist()) for ids, real in zip(batch["ids"], batch["real"], strict=True)}
    assert {"".join(map(tokenizer.token, ids)) for ids in rows} == {"bcde", "bc"}
    held = found.held_back.source.batch(0)
    assert [tokenizer.token(int(id)) for id in held["next"]] == ["d", "g"]
    assert [held["asked"][n, : int(end)].tolist() for n, end in enumerate(held["ends"])] == [
        [tokenizer.id("b"), tokenizer.id("c")],
        [tokenizer.id(item) for item in "cdef"],
    ]
    assert held["place"].tolist() == [1, 3]
    assert [row[row != -100].tolist() for row in held["targets"]] == [[tokenizer.id("d")], [tokenizer.id("g")]]
    assert any("1 of 2 histories lose their oldest items" in note for note in found.notes)


def test_whole_batches_are_framed_and_asked_at_a_mask_that_the_answer_is_not_in(tmp_path):
    tokenizer, found = asked(written(tmp_path, ["a b c d e f g h", "b c d e"]), "whole", "bert", 5)
    held = found.held_back.source.batch(0)
    for row, end, place, answer in zip(held["asked"], held["ends"], held["place"], held["next"], strict=True):
        ids = row[: int(end)].tolist()
        assert (ids[0], ids[-1]) == (tokenizer.special("class"), tokenizer.special("separator"))
        assert ids[int(place)] == tokenizer.special("mask")
        assert int(answer) not in ids
    assert {len(row) for row in found.train.batch(0)["ids"]} <= {4, 5}


def test_no_pair_to_learn_from_is_said(tmp_path):
    with pytest.raises(DataError, match="no history has two items to learn from"):
        asked(written(tmp_path, ["a b c", "b c d"]), "shifted")


def test_names_with_blanks_are_one_token_each():
    tokenizer = train_framed("word", map(spelt, ["Toy Story (1995)", "Heat"]), None, None)
    ids = numbers_of(tokenizer, ["Heat", "Toy Story (1995)", "Alien"])
    assert [shown(tokenizer.token(id)) for id in ids[:2]] == ["Heat", "Toy Story (1995)"]
    assert ids[2] == tokenizer.unknown_id


def test_a_question_has_the_newest_items():
    assert asked_behind([1, 2, 3], 2) == {"asked": [2, 3], "ends": 2, "place": 1}
    tokenizer = train_framed("word", ["a", "b"], None, "bert")
    found = asked_at_mask(tokenizer, [tokenizer.id("a"), tokenizer.id("b")], 4)
    assert [tokenizer.token(id) for id in found["asked"]] == ["[CLS]", "b", "[MASK]", "[SEP]"]
    assert (found["ends"], found["place"]) == (4, 2)


@pytest.mark.parametrize("name", ["label", "clicked"])
def test_items_that_were_shown_and_not_taken_are_left_out_and_told(tmp_path, caplog, name):
    (tmp_path / "a.csv").write_text(f"user,item,{name}\n1,a,1\n1,b,0\n1,c,1.0\n2,a,False\n2,c,true\n")
    found = list(read_interactions(tmp_path / "a.csv", {}))
    assert [(each.user, each.item) for each in found] == [("1", "a"), ("1", "c"), ("2", "c")]
    assert f"a.csv: 2 rows left out, whose {name} is 0: shown and not taken" in caplog.text


def test_numbers_that_a_gap_made_decimals_are_the_same_names(tmp_path):
    (tmp_path / "a.csv").write_text("user,item\n1.0,20.0\n1,30\n1.5,x.0\n")
    assert [each[:2] for each in read_interactions(tmp_path / "a.csv", {})] == [
        ("1", "20"),
        ("1", "30"),
        ("1.5", "x.0"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "actions"),
    [
        ("r.csv", "timestamp,visitorid,event,itemid,transactionid\n1433,25,view,35,\n", [("25", "35", 1433.0)]),
        (
            "y.json",
            '{"user_id": "u", "business_id": "b", "stars": 5.0, "date": "1970-01-01 00:00:09"}',
            [("u", "b", 9.0)],
        ),
        ("a.jsonl", '{"asin": "B1", "parent_asin": "B0", "user_id": "A", "timestamp": 7}', [("A", "B0", 7.0)]),
        ("e.csv", "event_time,product_id,user_id\n1970-01-01 00:00:05 UTC,4,5\n", [("5", "4", 5.0)]),
        ("b.csv", "User-ID,ISBN,Book-Rating\n27,034545104X,0\n", [("27", "034545104X", None)]),
        ("g.jsonl", '{"user_id": 1, "book_id": 2, "date_added": "Thu Jan 01 01:00:02 +0100 1970"}', [("1", "2", 2.0)]),
        ("otto.jsonl", '{"session": 1, "events": [{"aid": 5, "ts": 7}, {"aid": 6, "ts": 8}]}\n{"events": []}',
         [("1", "5", 7.0), ("1", "6", 8.0)]),
        ("netflix.txt", "1:\n7,3,1970-01-02\n2:\n7,5,1970-01-03\n", [("7", "1", 86400.0), ("7", "2", 172800.0)]),
        ("train.txt", "0 4 5\n1 4\n", [("0", "4", None), ("0", "5", None), ("1", "4", None)]),
        ("ml-1m.train.rating", "1\t10\t5\t9\n", [("1", "10", 9.0)]),
        ("UserBehavior.csv", "1,2268318,2520377,pv,1511544070\n", [("1", "2268318", 1511544070.0)]),
        ("UserBehavior.csv", "user_id,item_id,category,behavior,time\n1,2,3,pv,4\n", [("1", "2", 4.0)]),
        ("Gowalla_totalCheckins.txt", "0\t1970-01-01T00:00:09Z\t30.2\t-97.8\t22847\n", [("0", "22847", 9.0)]),
        ("yoochoose-clicks.dat", "1,1970-01-01T00:00:09.500Z,214536502,0\n", [("1", "214536502", 9.5)]),
        ("steam-200k.csv", '5,"Sid, the game",purchase,1.0,0\n', [("5", "Sid, the game", None)]),
    ],
)  # fmt: skip
def test_columns_of_published_sets_are_found(name, content, actions, tmp_path):
    """Retailrocket's, Yelp's, Amazon's of 2023, REES46's, Book-Crossing's, and others called as their files."""
    (tmp_path / name).write_text(content + "\n")
    assert list(read_interactions(tmp_path / name, {})) == actions


def test_columns_without_names_are_counted(tmp_path):
    (tmp_path / "beauty.csv").write_text("B1,A1,5.0,7\nB2,A1,4.0,8\n")
    asked = {"user": "2", "item": "1", "time": "4"}
    assert list(read_interactions(tmp_path / "beauty.csv", asked)) == [("A1", "B1", 7.0), ("A1", "B2", 8.0)]


@pytest.mark.parametrize(
    ("name", "content", "says", "hint"),
    [
        ("clicks.dat", "1,2014-04-07T10:51:09.277Z,214536502,0\n", "no '::' between fields", "3 is '214536502'"),
        ("user_artists.dat", "userID\tartistID\tweight\n2\t51\t13883\n", "no '::' between fields", ".tsv"),
        ("d.csv", "sessionId;userId;itemId\n1;2;3\n", "perhaps ';' separates them", "--data.user"),
        (
            "s.inter",
            "session_id:token\titem_id_list:token_seq\titem_id:token\n1\t1 2\t4\n",
            "history of each item_id",
            "row",
        ),
        ("steam.json", "{u'username': u'x', u'product_id': u'7'}\n", "as Python prints it", "literal_eval"),
        ("train.txt", "0 4 5\n0 6 4\n", "3 fields, and a .txt of interactions has a user and an item", "tr -s ' '"),
        ("train.txt", "0 4\n0 6\n1 4 5\n", "train.txt:3: 3 fields", "NEW.tsv"),
        ("pairs.txt", "0,4\n", "1 fields, and a .txt", "name a copy .csv"),
        ("behaviors.tsv", "1\tU1\t11/11/2019 9:05:58 AM\tN1 N2\tN3-1\n", "MIND's impressions", "awk"),
        (
            "ratings_Beauty.csv",
            "A1,B2,5.0,7\nA1,B3,5.0,8\n",
            "to hold the user among A1",
            "1 is 'A1', 2 is 'B2', 3 is '5.0'",
        ),
        ("otto.jsonl", '{"session": 1, "events": [{"aid": 1}, {"type": 3}]}\n', "aid is empty", ""),
        ("checkins.txt", "0\t2010-10-19T23:55:27Z\t30.2\t-97.8\t22847\n", "5 fields, and a .txt", "--data.time"),
        ("views.csv", "sessionId,userId,itemId,eventdate\n1,NA,8,2016-05-09\n", "userId is 'NA'", "data.user"),
        ("lists.jsonl", '{"user": 1, "item": [4, 5]}\n', "item holds a list", "row"),
        ("dates.csv", "user,item,date\n1,2,01/30/2021\n", "'01/30/2021', no time", "ISO"),
        ("b.csv", '"user";"item"\n"1";"2"\n', "semicolons", "delimiter=';'"),
        ("gap.jsonl", '{"user": 1, "item": NaN}\n', "item is empty", ""),
    ],
)
def test_what_would_be_read_wrongly_is_refused(name, content, says, hint, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=says) as error:
        list(read_interactions(tmp_path / name, {}))
    assert hint in error.value.hint


def test_kinds_of_actions_and_columns_that_are_not_read_are_told_and_chosen(tmp_path, caplog):
    file = tmp_path / "events.csv"
    kinds = ["view", "view", "transaction", "view"]
    rows = [f"{n},1,{kind},{n},\n" for n, kind in enumerate(kinds)]
    file.write_text("timestamp,visitorid,event,itemid,transactionid\n" + "".join(rows))
    said = InteractionSource.read(InteractionSettings(train=str(file))).remarks()
    assert said[:2] == [
        "columns: user visitorid, item itemid, time timestamp, event event; not read: transactionid",
        "every event is taken: view 3, transaction 1; data.events names those that are to be taken alone",
    ]
    chosen = InteractionSource.read(InteractionSettings(train=str(file), events="view"))
    assert chosen.histories[0].items == ("0", "1", "3")
    assert "events.csv: 1 rows left out, whose event is none of view" in caplog.text
    with pytest.raises(DataError, match="no row has the event 'buy'") as error:
        InteractionSource.read(InteractionSettings(train=str(file), events="view,buy"))
    assert error.value.hint == "there are: view 3, transaction 1"
    (tmp_path / "a.csv").write_text("user,item\n1,2\n")
    with pytest.raises(DataError, match="no column is known to hold kinds of actions among user, item"):
        list(read_interactions(tmp_path / "a.csv", {}, events=("view",)))


@pytest.mark.parametrize(("lacking", "told"), [("time", "None', no time"), ("item", "item is empty")])
def test_lines_of_json_that_lack_a_column_are_bad_ones(tmp_path, lacking, told):
    row = {"user": 1, "item": 2, "time": 3, "label": 1}
    other = {name: value for name, value in row.items() if name not in (lacking, "label")}
    (tmp_path / "a.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(other)}\n")
    with pytest.raises(DataError, match=f"a.jsonl:2: .*{told}"):
        list(read_interactions(tmp_path / "a.jsonl", {}))
    assert len(list(read_interactions(tmp_path / "a.jsonl", {}, skip_bad=1))) == 1
