package onceproof;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/**
 * Reads the headers of the record batches in the segments of replicas as a table, one row for each batch.
 *
 * <pre>
 *     replicas   a line for each: topic, partition, broker, 1 if the CRCs are to be checked and else 0, folder; with tabs
 *     task_bytes a task reads segments of so many bytes together, or a single larger one
 *     ends       true: a segment that ends in bytes that are no complete batch has one more row, see `rest`
 * </pre>
 *
 * The columns are those of the table `batches` (harness/record/tables.py), and `segment` and `rest`: null, but in a row
 * that `ends` asks for. Such a row has no other columns than topic, partition and broker: the path of the segment and
 * the number of bytes behind its last complete batch.
 */
public final class SegmentSource extends Source {
    public SegmentSource() {
        super("topic STRING, partition INT, broker STRING, first BIGINT, last BIGINT, records INT, producer_id BIGINT, "
            + "producer_epoch SMALLINT, sequence INT, transactional BOOLEAN, control STRING, crc BIGINT, "
            + "coordinator_epoch INT, marker BIGINT, intact BOOLEAN, fate STRING, segment STRING, rest BIGINT");
    }

    /** Whether an executor can read a folder. */
    public static boolean readable(String path) {
        return Files.isReadable(Path.of(path));
    }

    @Override
    InputPartition[] parts(Map<String, String> options) {
        long most = Long.parseLong(options.get("task_bytes"));
        List<InputPartition> parts = new ArrayList<>();
        List<Piece> pieces = new ArrayList<>();
        long bytes = 0;
        for (Piece each : pieces(options.get("replicas"))) {
            long more = each.path().toFile().length();
            if (!pieces.isEmpty() && bytes + more > most) {
                parts.add(new Part(new ArrayList<>(pieces)));
                pieces.clear();
                bytes = 0;
            }
            pieces.add(each);
            bytes += more;
        }
        if (!pieces.isEmpty()) {
            parts.add(new Part(pieces));
        }
        return parts.toArray(InputPartition[]::new);
    }

    private static List<Piece> pieces(String replicas) {
        List<Piece> found = new ArrayList<>();
        replicas.lines().map(Replica::of).forEach(replica -> {
            for (int index = 0; index < replica.segments().size(); index++) {
                found.add(new Piece(replica, index));
            }
        });
        return found;
    }

    @Override
    PartitionReaderFactory readers(HashMap<String, String> options, String[] columns) {
        return new Readers(Boolean.parseBoolean(options.get("ends")), columns);
    }

    /** A replica of a partition; `segments` are its files in the order of their offsets. It may have no folder. */
    record Replica(String topic, int partition, String broker, boolean crcs, ArrayList<String> segments)
        implements Serializable {

        static Replica of(String line) {
            String[] told = line.split("\t", 5);
            ArrayList<String> segments = new ArrayList<>();
            try (DirectoryStream<Path> files = Files.newDirectoryStream(Path.of(told[4]), "*.log")) {
                files.forEach(each -> segments.add(each.toString()));
            } catch (NoSuchFileException none) {
                // it has no segments
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
            segments.sort(null);
            return new Replica(told[0], Integer.parseInt(told[1]), told[2], told[3].equals("1"), segments);
        }
    }

    /** A segment of a replica. */
    record Piece(Replica replica, int index) implements Serializable {
        Path path() {
            return Path.of(replica.segments().get(index));
        }
    }

    private record Part(List<Piece> pieces) implements InputPartition { }

    private record Readers(boolean ends, String[] columns) implements PartitionReaderFactory {
        @Override
        public PartitionReader<InternalRow> createReader(InputPartition part) {
            return new SegmentReader(((Part) part).pieces(), ends, columns);
        }
    }
}
