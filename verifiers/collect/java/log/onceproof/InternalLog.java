package onceproof;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Iterator;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.FileLogInputStream.FileChannelRecordBatch;
import org.apache.kafka.common.record.internal.FileRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogKey;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogKeyJsonConverter;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogValue;
import org.apache.kafka.coordinator.transaction.generated.TransactionLogValueJsonConverter;

/**
 * Reads the records of a segment of __consumer_offsets or __transaction_state with Kafka's own classes, of any
 * compression, and checks the CRC of each batch.
 *
 * The result has one line of JSON for each record: {"offset": …, "key": …, "value": …}, where key and value have the
 * names of Kafka's message schemas, and the value is null for a tombstone; and "producerId", "producerEpoch" and
 * "transactional" of its batch.
 */
public final class InternalLog {
    private static final short OFFSET_COMMIT_LEGACY = 0;
    private static final short OFFSET_COMMIT = 1;
    private static final short TRANSACTION = 0;

    private InternalLog() { }

    /**
     * The committed offsets. Records of __consumer_offsets that describe groups are left out. A marker has the line
     * {"offset": …, "producerId": …, "commit": …}.
     */
    public static Lines offsets(String path) throws IOException {
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        return new Lines(path, InternalLog::marker, record -> {
            short type = record.key().getShort(0);
            if (type != OFFSET_COMMIT_LEGACY && type != OFFSET_COMMIT) {
                return null;
            }
            CoordinatorRecord both = serde.deserialize(record.key(), record.value());
            ObjectNode line = JsonNodeFactory.instance.objectNode();
            line.set("key", key(both));
            line.set("value", value(both));
            return line;
        });
    }

    /** The states of transactional ids. */
    public static Lines transactions(String path) throws IOException {
        return new Lines(path, marker -> null, record -> {
            ByteBuffer key = record.key();
            short type = key.getShort();
            if (type != TRANSACTION) {
                return null;
            }
            ObjectNode line = JsonNodeFactory.instance.objectNode();
            line.set("key", TransactionLogKeyJsonConverter.write(
                new TransactionLogKey(new ByteBufferAccessor(key), type), type));
            ByteBuffer value = record.value();
            if (value == null) {
                return line.putNull("value");
            }
            short version = value.getShort();
            line.set("value", TransactionLogValueJsonConverter.write(
                new TransactionLogValue(new ByteBufferAccessor(value), version), version));
            return line;
        });
    }

    /** The offset behind the last batch of a segment, 0 if there is none, and the number of its records. */
    public static long[] held(String path) throws IOException {
        long end = 0, records = 0;
        try (FileRecords held = FileRecords.open(new File(path), false)) {
            for (FileChannelRecordBatch batch : held.batches()) {
                end = batch.nextOffset();
                records += batch.countOrNull();
            }
        }
        return new long[] {end, records};
    }

    private static ObjectNode marker(Record record) {
        ControlRecordType type = ControlRecordType.parse(record.key());
        return JsonNodeFactory.instance.objectNode().put("commit", type == ControlRecordType.COMMIT);
    }

    private static JsonNode key(CoordinatorRecord record) {
        return org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters.writeRecordKeyAsJson(
            record.key());
    }

    private static JsonNode value(CoordinatorRecord record) {
        return record.value() == null ? JsonNodeFactory.instance.nullNode()
            : org.apache.kafka.coordinator.group.generated.CoordinatorRecordJsonConverters.writeRecordValueAsJson(
                record.value().message(), record.value().version());
    }

    private interface Decoder {
        ObjectNode decode(Record record);
    }

    /** The lines of a segment, some batches at a time. */
    public static final class Lines implements Closeable {
        private static final int AT_ONCE = 1 << 20; // characters, and those of the last batch

        private final String path;
        private final FileRecords records;
        private final Iterator<FileChannelRecordBatch> batches;
        private final Decoder ofMarkers, ofRecords;

        private Lines(String path, Decoder ofMarkers, Decoder ofRecords) throws IOException {
            this.path = path;
            this.ofMarkers = ofMarkers;
            this.ofRecords = ofRecords;
            records = FileRecords.open(new File(path), false);
            batches = records.batches().iterator();
        }

        /** The next lines; empty if there are no more. */
        public String next() throws IOException {
            StringBuilder lines = new StringBuilder();
            while (lines.length() < AT_ONCE && batches.hasNext()) {
                add(batches.next(), lines);
            }
            return lines.toString();
        }

        private void add(FileChannelRecordBatch batch, StringBuilder lines) throws IOException {
            if (batch.magic() < RecordBatch.MAGIC_VALUE_V2) {
                throw new IOException(path + ": the batch at offset " + batch.baseOffset() + " has message format "
                    + batch.magic() + "; allowed: 2");
            }
            batch.ensureValid();
            for (Record record : batch) {
                ObjectNode line = batch.isControlBatch() ? ofMarkers.decode(record)
                    : record.hasKey() ? ofRecords.decode(record) : null;
                if (line == null) {
                    continue;
                }
                line.put("offset", record.offset()).put("producerId", batch.producerId());
                if (!batch.isControlBatch()) {
                    line.put("producerEpoch", batch.producerEpoch()).put("transactional", batch.isTransactional());
                }
                lines.append(line).append('\n');
            }
        }

        @Override
        public void close() throws IOException {
            records.close();
        }
    }
}
