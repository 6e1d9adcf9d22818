package onceproof;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

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
public final class TopicSource implements TableProvider {
    private static final StructType SCHEMA = StructType.fromDDL(
        "partition INT NOT NULL, offset BIGINT NOT NULL, key BINARY, value BINARY, number BIGINT, "
        + "digest BIGINT NOT NULL, told_0 BIGINT, told_1 BIGINT, told_2 BIGINT, header BINARY");

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new Topic(properties.get("topic"));
    }

    private record Topic(String name) implements SupportsRead {
        @Override
        public StructType schema() {
            return SCHEMA;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return EnumSet.of(TableCapability.BATCH_READ);
        }

        @Override
        public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
            return new Pruned(new HashMap<>(options.asCaseSensitiveMap()));
        }
    }

    /** The scan of the columns that the query needs. */
    private static final class Pruned implements SupportsPushDownRequiredColumns, Scan, Batch {
        private final HashMap<String, String> options;
        private StructType columns = SCHEMA;

        Pruned(HashMap<String, String> options) {
            this.options = options;
        }

        @Override
        public void pruneColumns(StructType required) {
            columns = required;
        }

        @Override
        public Scan build() {
            return this;
        }

        @Override
        public StructType readSchema() {
            return columns;
        }

        @Override
        public Batch toBatch() {
            return this;
        }

        @Override
        public InputPartition[] planInputPartitions() {
            return Arrays.stream(options.get("ranges").split(",")).map(Range::of).toArray(InputPartition[]::new);
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return new Readers(options, columns.fieldNames());
        }
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
