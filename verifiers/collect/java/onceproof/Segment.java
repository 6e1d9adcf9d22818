package onceproof;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import java.util.zip.CRC32C;

import org.apache.kafka.common.utils.ByteUtils;

/**
 * The record batches of a segment file, one after the other, by their headers: message format 2, "Record Batch" in
 * Kafka's documentation of the message format.
 *
 * Only the header of a batch is read, unless its CRC is asked for, and the record of a control batch. The segment ends
 * at the first batch that is not complete, or of another format: `rest` is the number of bytes from there.
 */
final class Segment implements Closeable {
    private static final int PREFIX = 12; // base offset and length, which the length does not count
    private static final int LENGTH = 8, MAGIC = 16, CRC = 17, ATTRIBUTES = 21, LAST = 23;
    private static final int PRODUCER = 43, EPOCH = 51, SEQUENCE = 53, RECORDS = 57, HEADER = 61;
    private static final int TRANSACTIONAL = 0x10, CONTROL = 0x20;
    private static final byte FORMAT = 2;
    private static final int WINDOW = 4 << 10, WHOLE_WINDOW = 1 << 20; // bytes that are read at a time

    private final FileChannel file;
    private final long size;
    private final boolean whole;
    private ByteBuffer window;
    private long windowAt;
    private long following; // the place of the next batch in the file
    private int length; // of the present batch, with its prefix
    private int header; // the place of the present batch in the window

    /** `whole` says that the bytes of all batches will be asked for. */
    Segment(Path path, boolean whole) throws IOException {
        file = FileChannel.open(path, StandardOpenOption.READ);
        size = file.size();
        this.whole = whole;
        window = ByteBuffer.allocate(whole ? WHOLE_WINDOW : WINDOW).limit(0);
    }

    /** Moves to the next batch; false if there is no complete one. */
    boolean next() throws IOException {
        if (following + HEADER > size) {
            return false;
        }
        header = load(following, HEADER);
        long bytes = PREFIX + (long) window.getInt(header + LENGTH);
        if (window.get(header + MAGIC) != FORMAT || bytes < HEADER || following + bytes > size) {
            return false;
        }
        length = (int) bytes;
        following += bytes;
        return true;
    }

    /** The number of bytes behind the present batch; after the last one, those that are no complete batch. */
    long rest() {
        return size - following;
    }

    /** Goes on behind the present batch of another cursor over the same file, unless it is further already. */
    void catchUp(Segment other) {
        following = Math.max(following, other.following);
    }

    long first() {
        return window.getLong(header);
    }

    long last() {
        return first() + window.getInt(header + LAST);
    }

    int records() {
        return window.getInt(header + RECORDS);
    }

    long producer() {
        return window.getLong(header + PRODUCER);
    }

    short epoch() {
        return window.getShort(header + EPOCH);
    }

    int sequence() {
        return window.getInt(header + SEQUENCE);
    }

    long crc() {
        return Integer.toUnsignedLong(window.getInt(header + CRC));
    }

    boolean transactional() {
        return (window.getShort(header + ATTRIBUTES) & TRANSACTIONAL) != 0;
    }

    boolean control() {
        return (window.getShort(header + ATTRIBUTES) & CONTROL) != 0;
    }

    /** Whether the bytes have the CRC of the header, which covers a batch from its attributes to its end. */
    boolean intact() throws IOException {
        ByteBuffer bytes = bytes();
        CRC32C found = new CRC32C();
        found.update(bytes.position(bytes.position() + ATTRIBUTES));
        return found.getValue() == crc();
    }

    /** The control record of the present batch; UNREADABLE if its bytes are damaged. */
    Control controlRecord() throws IOException {
        ByteBuffer record = bytes();
        record.position(record.position() + HEADER);
        try {
            return control(record);
        } catch (RuntimeException damaged) {
            return Control.UNREADABLE;
        }
    }

    private static Control control(ByteBuffer record) {
        ByteUtils.readVarint(record); // length
        record.get(); // attributes
        ByteUtils.readVarlong(record); // timestamp
        ByteUtils.readVarint(record); // offset
        ByteBuffer key = Objects.requireNonNull(field(record)), value = field(record);
        Integer epoch = value != null && value.remaining() >= 6 ? value.getInt(value.position() + 2) : null;
        return new Control(key.getShort(key.position() + 2), epoch);
    }

    private static ByteBuffer field(ByteBuffer record) {
        int bytes = ByteUtils.readVarint(record);
        if (bytes < 0) {
            return null;
        }
        ByteBuffer found = record.slice(record.position(), bytes);
        record.position(record.position() + bytes);
        return found;
    }

    private ByteBuffer bytes() throws IOException {
        header = load(following - length, length);
        return window.duplicate().limit(header + length).position(header);
    }

    /** Reads bytes of the file, unless the window has them, and returns their place in the window. */
    private int load(long place, int bytes) throws IOException {
        if (place < windowAt || place + bytes > windowAt + window.limit()) {
            if (bytes > window.capacity()) {
                window = ByteBuffer.allocate(bytes);
            }
            window.clear();
            windowAt = place;
            while (window.position() < bytes) {
                if (file.read(window, place + window.position()) < 0) {
                    throw new IOException("the segment became shorter while it was read");
                }
            }
            window.flip();
        }
        return (int) (place - windowAt);
    }

    @Override
    public void close() throws IOException {
        file.close();
    }

    /** What a control record says: its type, and the coordinator epoch if it has one. */
    record Control(short type, Integer epoch) {
        private static final short ABORT = 0, COMMIT = 1;
        static final Control UNREADABLE = new Control(Short.MIN_VALUE, null);

        boolean commits() {
            return type == COMMIT;
        }

        String name() {
            return type == ABORT ? "abort" : type == COMMIT ? "commit" : this == UNREADABLE ? "unreadable"
                : "control-" + type;
        }
    }
}
