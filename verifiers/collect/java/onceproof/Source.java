package onceproof;

import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;

import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A data source with fixed columns, of which a scan reads those that the query needs, one task for each of its parts. */
abstract class Source implements TableProvider {
    private final StructType schema;

    Source(String ddl) {
        schema = StructType.fromDDL(ddl);
    }

    /** The parts of a scan with these options. */
    abstract InputPartition[] parts(Map<String, String> options);

    /** What reads a part, as rows of these columns. */
    abstract PartitionReaderFactory readers(HashMap<String, String> options, String[] columns);

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return schema;
    }

    @Override
    public Table getTable(StructType whole, Transform[] partitioning, Map<String, String> properties) {
        return new Readable();
    }

    private final class Readable implements SupportsRead {
        @Override
        public String name() {
            return Source.this.getClass().getSimpleName();
        }

        @Override
        public StructType schema() {
            return schema;
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
    private final class Pruned implements SupportsPushDownRequiredColumns, Scan, Batch {
        private final HashMap<String, String> options;
        private StructType columns = schema;

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
            return parts(options);
        }

        @Override
        public PartitionReaderFactory createReaderFactory() {
            return readers(options, columns.fieldNames());
        }
    }
}
