"""Small histories with faults, drawn by Hypothesis: a run simulated step by step, then broken in one to three places.

The breaks need not make sense together: both oracles must say the same of whatever comes out.
"""

from hypothesis import strategies as st

from tests.histories import breaks, columns, records
from tests.histories.simulation import SHAPES, Draw, Shape, Small

__all__ = ["SHAPES", "Shape", "Small", "small_runs"]

BREAKS = (
    records.drop_output,
    records.unread_output,
    records.double_output,
    records.change_output,
    records.swap_outputs,
    records.change_input,
    records.forget_acknowledgement,
    records.write_strange_input,
    records.store_input_again,
    records.change_observed,
    records.hide_the_end,
    records.move_start,
    records.delete_records,
    records.move_position,
    breaks.drop_batch,
    breaks.change_batch,
    breaks.turn_marker,
    breaks.lose_marker,
    breaks.repeat_marker,
    breaks.take_over,
    breaks.change_decision,
    breaks.forget_the_end,
    breaks.shift_sequence,
    breaks.leave_transaction,
    breaks.change_commit,
    breaks.write_position_late,
    breaks.change_history,
    breaks.stop_before_commit,
    breaks.hang,
)


def small_runs(shape: Shape) -> st.SearchStrategy[Small]:
    @st.composite
    def made(draw: Draw) -> Small:
        run = Small(draw, shape)
        for change in draw(st.lists(st.sampled_from(BREAKS), min_size=1, max_size=3)):
            change(run, draw)
        columns.fill(run)
        if shape.mode == "ledger":
            run.inputs = []
        return run

    return made()
