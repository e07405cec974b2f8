"""End of a batch in each of several partitions, by brute force."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from connectors.kafka_client.plan import batch_end, size

STAMPS = st.lists(st.lists(st.integers(0, 12), max_size=8), min_size=1, max_size=4)


@given(STAMPS, st.data())
def test_a_batch_fits_advances_and_lets_no_partition_run_ahead(
    stamps: list[list[int]], data: st.DataObject
) -> None:
    times = {f"t/{number}": each for number, each in enumerate(stamps)}
    end = {place: len(each) for place, each in times.items()}
    start = {place: data.draw(st.integers(0, at)) for place, at in end.items()}
    most = data.draw(st.integers(1, 12))

    def at(time: int) -> dict[str, int]:
        found = {}
        for place, each in times.items():
            later = [offset for offset, stamp in enumerate(each) if stamp >= time]
            if later:
                found[place] = later[0]
        return found

    all_times = [stamp for each in stamps for stamp in each]
    bounds = (min(all_times, default=0), max(all_times, default=0))
    reached = batch_end(start, end, most, bounds, at)
    assert all(start[place] <= reached[place] <= end[place] for place in end)
    assert size(start, reached) <= max(most, 0) or reached == end
    assert size(start, reached) <= most
    assert size(start, reached) > 0 or start == end
    behind = [place for place in end if reached[place] < end[place]]
    if len(behind) > 1 and all(each == sorted(each) for each in stamps):
        # What is read is of no later time than what is left, but for a time that is cut itself.
        read = [stamp for p in end for stamp in times[p][start[p] : reached[p]]]
        left = [stamp for p in end for stamp in times[p][reached[p] :]]
        assert max(read) <= min(left)
