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
 * Reads the records of one range, one row each. Markers have no row; under read_committed, aborted records have none.
 *
 * It ends when the consumer's position reaches the end of the range. It fails if the log no longer holds the start of
 * the range (there is no offset reset), or if the position does not advance until the deadline, as it does not behind an
 * open transaction.
 */
final class TopicReader implements PartitionReader<InternalRow> {
    private static final Duration POLL = Duration.ofSeconds(1);
    private static final long NONE = -1;
    private static final int ROW_BYTES = 512; // the initial size of the buffer, which grows
    private static final long SEED = 42; // the seed of Spark's xxhash64

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
    private final int namedField;
    private final String named;
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
        List<String> names = Arrays.asList(columns); // a column that is not requested has the index -1
        partitionField = names.indexOf("partition");
        offsetField = names.indexOf("offset");
        keyField = names.indexOf("key");
        valueField = names.indexOf("value");
        numberField = names.indexOf("number");
        digestField = names.indexOf("digest");
        toldFields = IntStream.range(0, told.length).map(index -> names.indexOf("told_" + index)).toArray();
        namedField = names.indexOf("header");
        named = options.get("named");
        headerAsked = Arrays.stream(toldFields).anyMatch(field -> field >= 0);
        row = new UnsafeRowWriter(columns.length, ROW_BYTES);
        // Keys and values are read as buffers, so that their bytes are copied only once, into the row.
        consumer = new KafkaConsumer<>(settings(options), new ByteBufferDeserializer(), new ByteBufferDeserializer());
        place = new TopicPartition(options.get("topic"), range.partition());
        try {
            consumer.assign(List.of(place));
            consumer.seek(place, range.start());
        } catch (RuntimeException error) { // Spark closes only a reader that was constructed
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

    /** Polls the next records; false if there are none before the end of the range. */
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
        if (namedField >= 0) {
            Header last = record.headers().lastHeader(named);
            write(namedField, last == null || last.value() == null ? null : ByteBuffer.wrap(last.value()));
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

    /** The same hash as Spark's xxhash64, which skips null values. */
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
            if (told[index] == NONE) { // a header with a part that is not a number is ignored as a whole
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

    /** The header's value; null if there is no such header, more than one, or one of another length. */
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

    /** The number in these bytes, which are at most eighteen decimal digits; NONE if not all of them are digits. */
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
