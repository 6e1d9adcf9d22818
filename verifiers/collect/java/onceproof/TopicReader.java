package onceproof;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteBufferDeserializer;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.unsafe.Platform;

/**
 * The records of one range, one row each. Markers, and aborted records under read_committed, have none.
 *
 * It ends when the consumer's position has come to the range's end, and fails where that cannot be: a start that the
 * log does not have any more (no reset), or a position that stands still until the deadline, as behind an open transaction.
 */
final class TopicReader implements PartitionReader<InternalRow> {
    private static final Duration POLL = Duration.ofSeconds(1);
    private static final long NONE = -1;
    private static final int ROW_BYTES = 512; // to begin with; it grows
    private static final long SEED = 42; // that of Spark's xxhash64

    private final KafkaConsumer<ByteBuffer, ByteBuffer> consumer;
    private final TopicPartition place;
    private final TopicSource.Range range;
    private final String headerName;
    private final int numberDigits;
    private final int[] widths;
    private final int headerBytes;
    private final long deadlineSeconds;
    private final int partitionField, offsetField, keyField, valueField, numberField, digestField;
    private final int[] toldFields;
    private final long[] told = new long[3];
    private final boolean headerAsked;
    private final UnsafeRowWriter row;
    private Iterator<ConsumerRecord<ByteBuffer, ByteBuffer>> polled = Collections.emptyIterator();
    private ConsumerRecord<ByteBuffer, ByteBuffer> record;

    TopicReader(Map<String, String> options, String[] columns, TopicSource.Range range) {
        this.range = range;
        headerName = options.get("header");
        numberDigits = Integer.parseInt(options.get("number"));
        widths = Arrays.stream(options.get("widths").split(",")).mapToInt(Integer::parseInt).toArray();
        headerBytes = Arrays.stream(widths).sum();
        deadlineSeconds = Long.parseLong(options.get("deadline_s"));
        List<String> names = Arrays.asList(columns); // a column that is not asked for has the index -1
        partitionField = names.indexOf("partition");
        offsetField = names.indexOf("offset");
        keyField = names.indexOf("key");
        valueField = names.indexOf("value");
        numberField = names.indexOf("number");
        digestField = names.indexOf("digest");
        toldFields = IntStream.range(0, told.length).map(index -> names.indexOf("told_" + index)).toArray();
        headerAsked = Arrays.stream(toldFields).anyMatch(field -> field >= 0);
        row = new UnsafeRowWriter(columns.length, ROW_BYTES);
        // Buffers: what a record holds is copied once, into the row.
        consumer = new KafkaConsumer<>(settings(options), new ByteBufferDeserializer(), new ByteBufferDeserializer());
        place = new TopicPartition(options.get("topic"), range.partition());
        try {
            consumer.assign(List.of(place));
            consumer.seek(place, range.start());
        } catch (RuntimeException error) { // Spark closes only what it was given
            consumer.close();
            throw error;
        }
    }

    private static Map<String, Object> settings(Map<String, String> options) {
        Map<String, Object> settings = new HashMap<>();
        options.forEach((name, value) -> {
            if (name.startsWith("kafka.")) {
                settings.put(name.substring("kafka.".length()), value);
            }
        });
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        settings.put(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "none");
        return settings;
    }

    @Override
    public boolean next() throws IOException {
        if (!polled.hasNext() && !poll()) {
            return false;
        }
        record = polled.next();
        return record.offset() < range.end();
    }

    /** The next records; false when there are none before the range's end. */
    private boolean poll() throws IOException {
        long position = consumer.position(place);
        long moved = System.nanoTime();
        while (position < range.end()) {
            polled = consumer.poll(POLL).iterator();
            if (polled.hasNext()) {
                return true;
            }
            long before = position;
            position = consumer.position(place);
            if (position > before) {
                moved = System.nanoTime();
            } else if (System.nanoTime() - moved > TimeUnit.SECONDS.toNanos(deadlineSeconds)) {
                throw new IOException(place + ": nothing came in " + deadlineSeconds + " s from offset " + position
                    + " on, and the range ends at " + range.end());
            }
        }
        return false;
    }

    @Override
    public InternalRow get() {
        row.reset();
        row.zeroOutNullBytes();
        if (partitionField >= 0) {
            row.write(partitionField, range.partition());
        }
        if (offsetField >= 0) {
            row.write(offsetField, record.offset());
        }
        if (keyField >= 0) {
            write(keyField, record.key());
        }
        if (valueField >= 0) {
            write(valueField, record.value());
        }
        if (numberField >= 0) {
            writeNumber(record.value());
        }
        if (digestField >= 0) {
            row.write(digestField, hash(record.value(), hash(record.key(), SEED)));
        }
        if (headerAsked) {
            writeTold();
        }
        return row.getRow();
    }

    private void write(int field, ByteBuffer bytes) {
        if (bytes == null) {
            row.setNullAt(field);
        } else {
            row.write(field, bytes.array(), bytes.arrayOffset() + bytes.position(), bytes.remaining());
        }
    }

    /** As Spark's xxhash64, which leaves out what is null. */
    private static long hash(ByteBuffer bytes, long seed) {
        return bytes == null ? seed : XXH64.hashUnsafeBytes(bytes.array(),
            Platform.BYTE_ARRAY_OFFSET + bytes.arrayOffset() + bytes.position(), bytes.remaining(), seed);
    }

    private void writeNumber(ByteBuffer value) {
        long number = NONE;
        if (value != null && value.hasRemaining()) {
            int length = Math.min(numberDigits, value.remaining());
            number = digits(value.array(), value.arrayOffset() + value.position(), length);
        }
        write(numberField, number);
    }

    private void writeTold() {
        byte[] value = header();
        int place = 0;
        Arrays.fill(told, NONE);
        for (int index = 0; value != null && index < widths.length; index++) {
            told[index] = digits(value, place, widths[index]);
            place += widths[index];
            if (told[index] == NONE) { // of such a header nothing counts
                Arrays.fill(told, NONE);
                break;
            }
        }
        for (int index = 0; index < told.length; index++) {
            if (toldFields[index] >= 0) {
                write(toldFields[index], told[index]);
            }
        }
    }

    /** The header's value; null when there is none, or more than one, or when it has another length. */
    private byte[] header() {
        byte[] value = null;
        int found = 0;
        for (Header each : record.headers()) {
            if (each.key().equals(headerName)) {
                value = each.value();
                found++;
            }
        }
        return found == 1 && value != null && value.length == headerBytes ? value : null;
    }

    private void write(int field, long number) {
        if (number == NONE) {
            row.setNullAt(field);
        } else {
            row.write(field, number);
        }
    }

    /** The number that these bytes say in decimal, eighteen at most; NONE when not all of them are digits. */
    private static long digits(byte[] bytes, int from, int length) {
        long number = 0;
        for (int place = from; place < from + length; place++) {
            int digit = bytes[place] - '0';
            if (digit < 0 || digit > 9) {
                return NONE;
            }
            number = 10 * number + digit;
        }
        return number;
    }

    @Override
    public void close() {
        consumer.close();
    }
}
