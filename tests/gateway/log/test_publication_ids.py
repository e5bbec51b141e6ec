"""Publication ids: one for each event, and the way back."""

from hypothesis import given
from hypothesis import strategies as st

from relaycast_gateway.log.publication_ids import PublicationIds
from relaycast_gateway.record import MOST_PUBLICATION_ID


@given(st.binary(max_size=64), st.lists(st.integers(0, MOST_PUBLICATION_ID - 1), unique=True, max_size=40))
def test_an_id_leads_back_to_its_event(key: bytes, seqs: list[int]) -> None:
    ids = PublicationIds(key)
    found = ids.of(seqs)
    assert all(1 <= pub_id <= MOST_PUBLICATION_ID for pub_id in found)
    assert len(set(found)) == len(seqs)
    assert [ids.of([seq]) for seq in seqs] == [[pub_id] for pub_id in found]
    assert [ids.seq_of(pub_id) for pub_id in found] == seqs
