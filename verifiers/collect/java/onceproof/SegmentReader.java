package onceproof;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.unsafe.types.UTF8String;

/** Reads the batches of some segments, one row each. */
final class SegmentReader implements PartitionReader<InternalRow> {
    private static final List<String> COLUMNS = List.of("topic", "partition", "broker", "first", "last", "records",
        "producer_id", "producer_epoch", "sequence", "transactional", "control", "crc", "coordinator_epoch", "marker",
        "intact", "fate", "segment", "rest");
    private static final int ROW_BYTES = 512; // the initial size of the buffer, which grows

    private final Iterator<SegmentSource.Piece> pieces;
    private final boolean ends;
    private final int[] fields; // the place of each of COLUMNS in a row; -1 for one that is not asked for
    private final UnsafeRowWriter row;
    private SegmentSource.Piece piece;
    private UTF8String topic, broker;
    private Segment segment;
    private Markers markers;
    private boolean atEnd;

    SegmentReader(List<SegmentSource.Piece> pieces, boolean ends, String[] columns) {
        this.pieces = pieces.iterator();
        this.ends = ends;
        List<String> asked = Arrays.asList(columns);
        fields = COLUMNS.stream().mapToInt(asked::indexOf).toArray();
        row = new UnsafeRowWriter(columns.length, ROW_BYTES);
    }

    @Override
    public boolean next() throws IOException {
        while (true) {
            if (segment != null && !atEnd) {
                if (segment.next()) {
                    return true;
                }
                atEnd = true;
                if (ends && segment.rest() > 0) {
                    return true;
                }
            }
            close();
            if (!pieces.hasNext()) {
                return false;
            }
            piece = pieces.next();
            topic = UTF8String.fromString(piece.replica().topic());
            broker = UTF8String.fromString(piece.replica().broker());
            segment = new Segment(piece.path(), piece.replica().crcs());
            markers = new Markers(piece, segment);
            atEnd = false;
        }
    }

    @Override
    public InternalRow get() {
        try {
            write();
        } catch (IOException error) {
            throw new UncheckedIOException(piece.path() + ": " + error.getMessage(), error);
        }
        return row.getRow();
    }

    private void write() throws IOException {
        row.reset();
        row.zeroOutNullBytes();
        put(0, topic);
        put(1, piece.replica().partition());
        put(2, broker);
        if (atEnd) {
            for (int column = 3; column < 16; column++) {
                putNull(column);
            }
            put(16, UTF8String.fromString(piece.path().toString()));
            put(17, segment.rest());
            return;
        }
        put(3, segment.first());
        put(4, segment.last());
        put(5, segment.records());
        put(6, segment.producer());
        put(7, segment.epoch());
        put(8, segment.sequence());
        put(9, segment.transactional());
        put(11, segment.crc());
        putEnd();
        if (piece.replica().crcs()) {
            put(14, segment.intact());
        } else {
            putNull(14);
        }
        putNull(16);
        putNull(17);
    }

    /** Writes what ended the transaction of a batch, or what a control batch ends. */
    private void putEnd() throws IOException {
        Markers.Marker marker = null;
        Segment.Control control = null;
        String fate = "visible";
        if (segment.control()) {
            control = segment.controlRecord();
            markers.passed();
            fate = "control";
        } else if (segment.transactional()) {
            marker = markers.after();
            fate = marker == null ? "open" : marker.commits() ? "visible" : "aborted";
        }
        if (control == null) {
            putNull(10);
        } else {
            put(10, UTF8String.fromString(control.name()));
        }
        if (control == null || control.epoch() == null) {
            putNull(12);
        } else {
            put(12, control.epoch());
        }
        if (marker == null) {
            putNull(13);
        } else {
            put(13, marker.offset());
        }
        put(15, UTF8String.fromString(fate));
    }

    private void put(int column, UTF8String value) {
        if (fields[column] >= 0) {
            row.write(fields[column], value);
        }
    }

    private void put(int column, long value) {
        if (fields[column] >= 0) {
            row.write(fields[column], value);
        }
    }

    private void put(int column, int value) {
        if (fields[column] >= 0) {
            row.write(fields[column], value);
        }
    }

    private void put(int column, short value) {
        if (fields[column] >= 0) {
            row.write(fields[column], value);
        }
    }

    private void put(int column, boolean value) {
        if (fields[column] >= 0) {
            row.write(fields[column], value);
        }
    }

    private void putNull(int column) {
        if (fields[column] >= 0) {
            row.setNullAt(fields[column]);
        }
    }

    @Override
    public void close() throws IOException {
        if (segment != null) {
            segment.close();
            markers.close();
            segment = null;
        }
    }
}
