package onceproof;

import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/**
 * Reads ranges of a topic's offsets as a table, one task for each range, with Kafka's own consumer.
 *
 * <pre>
 *     topic      the topic
 *     ranges     0:12:3456,1:0:99       partition:start:end, the end not included
 *     number     12: the number of digits at the beginning of the value that make the column `number`
 *     header     the name of the header that is read
 *     widths     18,18: the number of digits of the header that make told_0, told_1, told_2
 *     named      the name of the header whose value is the column `header`; null if a record has none
 *     deadline_s the number of seconds without a record, before the end of a range, after which the query fails
 *     kafka.*    the consumer's settings
 * </pre>
 *
 * A number that is not all digits is null. The header is null if a record has none, several, or one of another length.
 *
 * The column `digest` is xxhash64(key, value). It and the numbers are computed from a record's bytes in place, so no
 * value is copied for them.
 *
 * Unlike Spark's own source, it materialises only the requested columns, and it does not ask a broker for a partition's
 * first and last offset after each poll. It reads everything that a range holds, or the query fails (TopicReader).
 */
public final class TopicSource extends Source {
    public TopicSource() {
        super("partition INT NOT NULL, offset BIGINT NOT NULL, key BINARY, value BINARY, number BIGINT, "
            + "digest BIGINT NOT NULL, told_0 BIGINT, told_1 BIGINT, told_2 BIGINT, header BINARY");
    }

    @Override
    InputPartition[] parts(Map<String, String> options) {
        return Arrays.stream(options.get("ranges").split(",")).map(Range::of).toArray(InputPartition[]::new);
    }

    @Override
    PartitionReaderFactory readers(HashMap<String, String> options, String[] columns) {
        return new Readers(options, columns);
    }

    /** The offsets of a partition from start up to but not including end. */
    record Range(int partition, long start, long end) implements InputPartition {
        static Range of(String text) {
            String[] parts = text.split(":");
            return new Range(Integer.parseInt(parts[0]), Long.parseLong(parts[1]), Long.parseLong(parts[2]));
        }
    }

    private record Readers(HashMap<String, String> options, String[] columns) implements PartitionReaderFactory {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition range) {
            return new TopicReader(options, columns, (Range) range);
        }
    }
}
