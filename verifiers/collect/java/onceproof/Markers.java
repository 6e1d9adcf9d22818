package onceproof;

import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;

/**
 * Finds the marker that ends the transaction of a batch: the next one of its producer id in the replica, which may be in
 * a later segment.
 *
 * A second cursor is ahead of the reader's, by no more than is needed to find the marker of the present batch. Without a
 * marker it reaches the end of the log, once for the segment that is read.
 */
final class Markers implements Closeable {
    private final SegmentSource.Piece piece;
    private final Segment reader;
    private final Map<Long, Queue<Marker>> found = new HashMap<>(); // those between both cursors, by producer id
    private Segment ahead;
    private int index;

    Markers(SegmentSource.Piece piece, Segment reader) {
        this.piece = piece;
        this.reader = reader;
        index = piece.index();
    }

    /** The marker that ends the transaction of the reader's batch; null if none follows. */
    Marker after() throws IOException {
        long producer = reader.producer();
        Queue<Marker> mine = found.get(producer);
        if (mine != null) {
            return mine.peek();
        }
        if (ahead == null) {
            ahead = new Segment(piece.path(), false);
        }
        if (index == piece.index()) {
            ahead.catchUp(reader);
        }
        while (advance()) {
            if (ahead.control()) {
                Marker marker = new Marker(ahead.first(), ahead.controlRecord().commits());
                found.computeIfAbsent(ahead.producer(), each -> new ArrayDeque<>()).add(marker);
                if (ahead.producer() == producer) {
                    return marker;
                }
            }
        }
        return null;
    }

    /** The reader's batch is a marker, so it ends no batch behind it. */
    void passed() {
        Queue<Marker> mine = found.get(reader.producer());
        if (mine != null && mine.peek().offset() == reader.first()) {
            mine.remove();
            if (mine.isEmpty()) {
                found.remove(reader.producer());
            }
        }
    }

    private boolean advance() throws IOException {
        while (!ahead.next()) {
            if (index + 1 == piece.replica().segments().size()) {
                return false;
            }
            ahead.close();
            index++;
            ahead = new Segment(Path.of(piece.replica().segments().get(index)), false);
        }
        return true;
    }

    @Override
    public void close() throws IOException {
        if (ahead != null) {
            ahead.close();
        }
    }

    /** A marker: its offset, and whether it commits. */
    record Marker(long offset, boolean commits) { }
}
