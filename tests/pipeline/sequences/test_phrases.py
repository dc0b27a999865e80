"""Pieces of Thai, Lao, Khmer and Burmese texts: never too short, never too long."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.sequences.phrases import MAX, MIN, phrase_ends
from pipeline.sequences.sentences import split

THAI = (
    "กรุงเทพมหานคร เป็นเมืองหลวงและนครที่มีประชากรมากที่สุดของประเทศไทย ก่อตั้งเมื่อ ค.ศ. 1782 "
    "ในรัชสมัยของพระบาทสมเด็จพระพุทธยอดฟ้าจุฬาโลก "
)
KHMER = "ព្រះរាជាណាចក្រកម្ពុជា\u200bស្ថិតនៅ\u200bអាស៊ីអាគ្នេយ៍។ រាជធានី\u200bភ្នំពេញ\u200bជា\u200bទីក្រុង\u200bធំជាងគេ។ "


def test_a_year_and_its_era_are_in_one_piece() -> None:
    text = THAI * 20
    assert sum("ค.ศ. 1782" in text[start:end] for start, end in split(text, "th")) == 20


def test_pieces_end_at_marks_rather_than_at_blanks() -> None:
    text = KHMER * 3
    assert all(text[end - 1] == "។" for _, end in split(text, "km"))


def test_a_bracket_is_not_parted_where_there_is_another_blank() -> None:
    text = "ก" * 50 + " (ข" + "ข" * 20 + " " + "ค" * 20 + ") ง" + "ง" * 80
    assert [text[start:end] for start, end in split(text, "th")] == [text[:95], text[96:]]


def test_a_link_is_kept_longer_than_a_piece() -> None:
    text = "ก" * 1000
    assert split(text, "th", links=[(100, 700)]) == [(0, 800), (800, 960), (960, 1000)]


@given(st.text("กเาิ ค. 1(។)\u200b", max_size=900))
def test_pieces_fit_whatever_the_text(text: str) -> None:
    edges = [0, *phrase_ends(text), len(text)]
    lengths = [end - start for start, end in pairwise(edges)]
    assert edges == sorted(edges)
    assert max(lengths) <= MAX
    assert all(length >= MIN for length in lengths[:-1])


@pytest.mark.parametrize("letters", ["ที่", "เกี๊", "ក្រុំ", "မြို့"])
def test_no_letter_is_parted_from_its_marks(letters: str) -> None:
    ends = phrase_ends(letters * 200)
    assert ends
    assert all(end % len(letters) == 0 for end in ends)
