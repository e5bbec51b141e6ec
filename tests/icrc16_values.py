"""ICRC-16 values of every variant, drawn."""

from hypothesis import strategies as st

from relaycast_gateway.icrc16 import NOTHING, WHOLE_NUMBERS, Icrc16, Property, Tag, text

finite = st.floats(allow_nan=False)
of_bytes = st.sampled_from([Tag.BLOB, Tag.BYTES, Tag.PRINCIPAL])


def whole(tag: Tag) -> st.SearchStrategy[Icrc16]:
    least, most = WHOLE_NUMBERS[tag]
    return st.integers(least, most).map(lambda number: Icrc16(tag, number))


leaves = st.one_of(
    st.text(max_size=8).map(text),
    st.sampled_from(["0x", "0x00", "0x0", "0xAB"]).map(text),
    st.builds(Icrc16, of_bytes, st.binary(max_size=8)),
    st.booleans().map(lambda value: Icrc16(Tag.BOOL, value)),
    finite.map(lambda value: Icrc16(Tag.FLOAT, value)),
    st.lists(finite, max_size=3).map(lambda values: Icrc16(Tag.FLOATS, tuple(values))),
    st.lists(st.integers(0, 1 << 80), max_size=3).map(lambda values: Icrc16(Tag.NATS, tuple(values))),
    st.just(NOTHING),
    *(whole(tag) for tag in WHOLE_NUMBERS),
)
names = st.sampled_from(["a", "b", "$Nat", "", "$"])


def nested(inner: st.SearchStrategy[Icrc16]) -> st.SearchStrategy[Icrc16]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda values: Icrc16(Tag.ARRAY, values)),
        several.map(lambda values: Icrc16(Tag.SET, values)),
        inner.map(lambda value: Icrc16(Tag.OPTION, value)),
        st.lists(st.tuples(names, inner), max_size=3).map(lambda it: Icrc16(Tag.MAP, tuple(it))),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda it: Icrc16(Tag.VALUE_MAP, tuple(it))),
        st.lists(st.builds(Property, names, inner, st.booleans()), max_size=2).map(
            lambda it: Icrc16(Tag.CLASS, tuple(it))
        ),
    )


values = st.recursive(leaves, nested, max_leaves=12)
