"""Python's garbage collector is paused for a block, and works afterwards as before."""

import gc

import pytest

from onceproof.harness.base.memory import collector_paused


def test_the_collector_works_again_after_the_block() -> None:
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            pass
        assert not gc.isenabled(), "the outer block is not over"
    assert gc.isenabled()


def test_the_collector_works_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="of the block"), collector_paused():
        raise ValueError("of the block")
    assert gc.isenabled()


def test_a_collector_that_did_not_work_is_left_alone() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
