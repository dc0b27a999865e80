"""Places in texts."""

from tasks.io.windows import without_overlaps
from tests.support.properties import given, st

PLACES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5)).map(lambda each: (each[0], sum(each))), unique=True, max_size=7
)


@given(PLACES)
def test_places_that_are_kept_do_not_overlap_and_those_given_first_win(places: list[tuple[int, int]]) -> None:
    kept = without_overlaps(places)
    assert kept == sorted(kept)
    covered = [at for start, end in kept for at in range(start, end)]
    assert len(covered) == len(set(covered))
    for number, (start, end) in enumerate(places):
        if (start, end) not in kept:
            over = [other for other in kept if other[0] < end and start < other[1]]
            assert any(other in places[:number] for other in over), "left out without a reason"
