"""The allocator does what the freeing-bump allocator of nodes does (``sc-allocator``), fault by fault."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaycast_wasm.host.allocator import (
    HEADER_BYTES,
    IN_USE,
    LARGEST_BYTES,
    AllocatorFault,
    FreeingBumpAllocator,
    OutOfSpace,
)
from relaycast_wasm.host.memory import PAGE_BYTES
from wasm.byte_memory import ByteMemory
from wasm.naive_allocator import NaiveAllocator, NaiveFault


def heap(base: int = 0, *, pages: int = 1, most: int = 65_536) -> tuple[ByteMemory, FreeingBumpAllocator]:
    memory = ByteMemory(pages, most=most)
    return memory, FreeingBumpAllocator(memory, base, max_pages=most)


@pytest.mark.upstream("should_allocate_properly")
def test_the_first_allocation_stands_behind_its_header() -> None:
    assert heap()[1].allocate(1) == 8


@pytest.mark.upstream("should_always_align_pointers_to_multiples_of_8")
@pytest.mark.parametrize(("base", "pointer"), [(0, 8), (1, 16), (7, 16), (8, 16), (13, 24)])
def test_allocations_stand_at_multiples_of_8(base: int, pointer: int) -> None:
    assert heap(base)[1].allocate(1) == pointer


@pytest.mark.upstream("should_increment_pointers_properly")
def test_allocations_stand_one_behind_the_other() -> None:
    _, allocator = heap()
    assert [allocator.allocate(size) for size in (1, 9, 1)] == [8, 24, 48]


@pytest.mark.parametrize(("size", "taken"), [
    (0, 8), (1, 8), (8, 8), (9, 16), (16, 16), (17, 32), (33, 64), (1_000, 1_024), (2**20 + 1, 2**21),
])  # fmt: skip
def test_sizes_are_rounded_up_to_powers_of_two(size: int, taken: int) -> None:
    _, allocator = heap()
    first = allocator.allocate(size)
    assert allocator.allocate(1) == first + taken + HEADER_BYTES
    assert allocator.allocated_bytes == taken + HEADER_BYTES + 16


@pytest.mark.upstream("should_free_properly")
def test_what_is_freed_is_marked_as_the_last_of_its_list() -> None:
    memory, allocator = heap()
    allocator.allocate(1)
    second = allocator.allocate(1)
    assert memory.read_u64(second - 8) == IN_USE
    allocator.free(second)
    assert memory.read_u64(second - 8) == 0xFFFF_FFFF


@pytest.mark.upstream("should_deallocate_and_reallocate_properly")
def test_what_is_freed_is_given_out_again() -> None:
    _, allocator = heap(13)
    first, second = allocator.allocate(1), allocator.allocate(9)
    assert (first, second) == (24, 40)
    allocator.free(second)
    assert allocator.allocate(9) == second
    assert allocator.allocate(9) == 64, "its list is empty again"


@pytest.mark.upstream("should_build_linked_list_of_free_areas_properly")
@pytest.mark.upstream("deallocate_needs_to_maintain_linked_list")
def test_what_was_freed_last_is_given_out_first() -> None:
    memory, allocator = heap()
    pointers = [allocator.allocate(8) for _ in range(4)]
    for pointer in pointers:
        allocator.free(pointer)
    assert [memory.read_u64(it - 8) for it in pointers] == [0xFFFF_FFFF, *(it - 8 for it in pointers[:-1])]
    assert [allocator.allocate(8) for _ in range(4)] == pointers[::-1]


def test_each_size_has_a_list_of_its_own() -> None:
    _, allocator = heap()
    small, large = allocator.allocate(8), allocator.allocate(100)
    allocator.free(small)
    allocator.free(large)
    assert allocator.allocate(65) == large
    assert allocator.allocate(3) == small


@pytest.mark.upstream("should_not_allocate_if_too_large")
@pytest.mark.upstream("should_not_allocate_if_full")
def test_a_full_memory_gives_nothing() -> None:
    with pytest.raises(OutOfSpace, match=r"the memory may have 1 pages of 64 KiB, 2 are asked for"):
        heap(13, most=1)[1].allocate(PAGE_BYTES - 13)
    _, allocator = heap(most=1)
    assert allocator.allocate(PAGE_BYTES // 2 - 8) == 8
    with pytest.raises(OutOfSpace):
        allocator.allocate(PAGE_BYTES // 2)


@pytest.mark.upstream("should_allocate_max_possible_allocation_size")
def test_the_largest_allocation_has_32_mib() -> None:
    memory, allocator = heap()
    assert allocator.allocate(LARGEST_BYTES) == 8
    assert memory.size == LARGEST_BYTES + PAGE_BYTES


@pytest.mark.upstream("should_not_allocate_if_requested_size_too_large")
def test_a_larger_one_is_refused() -> None:
    with pytest.raises(AllocatorFault, match=r"^33554433 bytes are more than one allocation may have, 33554432$"):
        heap()[1].allocate(LARGEST_BYTES + 1)


@pytest.mark.upstream("should_return_error_when_bumper_greater_than_heap_size")
def test_a_memory_used_to_its_last_byte_gives_nothing_of_another_size() -> None:
    _, allocator = heap(most=1)
    pointers = [allocator.allocate(32) for _ in range(PAGE_BYTES // 40)]
    assert allocator.allocated_bytes == PAGE_BYTES - 16
    for pointer in pointers:
        allocator.free(pointer)
    assert allocator.allocated_bytes == 0
    assert allocator.allocate(8) == PAGE_BYTES - 8
    with pytest.raises(OutOfSpace):
        allocator.allocate(8)


@pytest.mark.upstream("should_include_prefixes_in_total_heap_size")
@pytest.mark.upstream("should_calculate_total_heap_size_to_zero")
@pytest.mark.upstream("should_calculate_total_size_of_zero")
def test_headers_count_as_allocated() -> None:
    _, allocator = heap(19)
    for _ in range(10):
        pointer = allocator.allocate(42)
        assert allocator.allocated_bytes == 72
        allocator.free(pointer)
        assert allocator.allocated_bytes == 0


@pytest.mark.upstream("should_grow_memory_when_running_out_of_memory")
def test_a_memory_that_may_grow_doubles() -> None:
    memory, allocator = heap(pages=1)
    sizes = []
    for _ in range(8):
        allocator.allocate(PAGE_BYTES)
        sizes.append(memory.size // PAGE_BYTES)
    assert sizes == [2, 4, 4, 8, 8, 8, 8, 16]


def test_a_memory_near_its_limit_grows_up_to_it() -> None:
    memory, allocator = heap(pages=2, most=3)
    allocator.allocate(PAGE_BYTES)
    allocator.allocate(PAGE_BYTES // 2)
    assert memory.size == 2 * PAGE_BYTES
    allocator.allocate(PAGE_BYTES // 2)
    assert memory.size == 3 * PAGE_BYTES


@pytest.mark.upstream("modifying_the_header_leads_to_an_error")
def test_a_header_that_was_written_over_is_found_out() -> None:
    memory, allocator = heap()
    first = allocator.allocate(5)
    allocator.free(first)
    memory.write_u64(first - 8, 0xFFFF_FFF0)
    assert allocator.allocate(5) == first, "the link is looked at once it is followed"
    with pytest.raises(AllocatorFault, match=r"^the list of what is free leads to 4294967280, outside of the memory$"):
        allocator.allocate(5)


@pytest.mark.parametrize(("word", "reason"), [
    (0, "nothing was allocated at 8"),  # it is free
    (IN_USE | 23, "nothing was allocated at 8"),  # no such order
    (IN_USE | 22, "more was freed than was allocated"),
])  # fmt: skip
def test_freeing_what_has_no_header_is_refused(word: int, reason: str) -> None:
    memory, allocator = heap()
    pointer = allocator.allocate(8)
    memory.write_u64(pointer - 8, word)
    with pytest.raises(AllocatorFault, match=f"^{reason}$"):
        allocator.free(pointer)


@pytest.mark.parametrize("pointer", [0, 1, 7, 9, 16, PAGE_BYTES, PAGE_BYTES + 1, PAGE_BYTES + 8, 2**31, 2**32 - 1])
def test_freeing_what_was_not_allocated_is_refused(pointer: int) -> None:
    _, allocator = heap(16)
    allocator.allocate(8)
    with pytest.raises(AllocatorFault, match=f"^nothing was allocated at {pointer}$"):
        allocator.free(pointer)


def test_freeing_twice_is_refused() -> None:
    _, allocator = heap()
    pointer = allocator.allocate(8)
    allocator.free(pointer)
    with pytest.raises(AllocatorFault, match=r"^nothing was allocated at 8$"):
        allocator.free(pointer)


def test_a_free_list_that_leads_to_what_is_in_use_is_found_out() -> None:
    memory, allocator = heap()
    first, second = allocator.allocate(8), allocator.allocate(8)
    allocator.free(first)
    memory.write_u64(first - 8, second - 8)
    allocator.allocate(8)
    with pytest.raises(AllocatorFault, match=r"^what stands at 16 is in use, and in the list of what is free$"):
        allocator.allocate(8)


@pytest.mark.upstream("poison_oom")
def test_after_a_fault_nothing_is_given_or_taken() -> None:
    _, allocator = heap(most=1)
    pointer = allocator.allocate(8)
    with pytest.raises(OutOfSpace):
        allocator.allocate(PAGE_BYTES)
    for act in (lambda: allocator.allocate(8), lambda: allocator.free(pointer)):
        with pytest.raises(AllocatorFault, match=r"^the allocator has failed before$"):
            act()


@dataclass(frozen=True)
class Step:
    """Allocate ``number`` bytes; free what was given out as that number, or what stands there; or write it over one."""

    act: str
    number: int
    word: int = 0


STEPS = st.one_of(
    st.builds(Step, st.just("allocate"), st.one_of(st.integers(0, 300), st.integers(0, 70_000), st.just(2**25 + 1))),
    st.builds(Step, st.just("free"), st.integers(0, 30)),
    st.builds(Step, st.just("free at"), st.integers(0, 200_000)),
    st.builds(Step, st.just("write over"), st.integers(0, 30), st.integers(0, 2**34)),
)


@given(base=st.integers(0, 100), most=st.integers(1, 8), steps=st.lists(STEPS, max_size=60))
def test_it_agrees_with_its_twin(base: int, most: int, steps: list[Step]) -> None:
    memory, allocator = heap(base, most=most)
    twin_memory = bytearray(PAGE_BYTES)
    twin = NaiveAllocator(twin_memory, base, most)
    given_out = [0]
    for step in steps:
        one_of_them = given_out[step.number % len(given_out)]
        if step.act == "write over":
            if one_of_them:
                memory.write_u64(one_of_them - 8, step.word)
                twin_memory[one_of_them - 8 : one_of_them] = step.word.to_bytes(8, "little")
            continue
        argument = one_of_them if step.act == "free" else step.number
        outcomes: list[int | str | None] = []
        for one in (allocator, twin):
            try:
                outcomes.append((one.allocate if step.act == "allocate" else one.free)(argument))
            except (AllocatorFault, NaiveFault):
                outcomes.append("fault")
        assert outcomes[0] == outcomes[1], step
        if isinstance(outcomes[0], int):
            given_out.append(outcomes[0])
    assert memory.data == twin_memory
