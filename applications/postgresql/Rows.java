import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.List;
import java.util.Map;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A copy of each record into a table of PostgreSQL. The group's offsets are committed after the transaction of the
 * database, so that records may come twice; the primary key makes that harmless. BROKEN=no-key leaves it out, and lets
 * the consumer commit offsets from time to time.
 */
public final class Rows {
    private static final String TABLE = "\"" + System.getenv("TABLE") + "\"";
    private static final boolean KEYED = !"no-key".equals(System.getenv("BROKEN"));

    private Rows() {
    }

    public static void main(String[] arguments) throws SQLException {
        KafkaConsumer<String, String> consumer = new KafkaConsumer<>(Map.of(
            "bootstrap.servers", System.getenv("BOOTSTRAP"), "group.id", System.getenv("GROUP"),
            "enable.auto.commit", String.valueOf(!KEYED), "auto.commit.interval.ms", "1000",
            "auto.offset.reset", "earliest", "isolation.level", "read_committed",
            "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000", "max.poll.records", "200"),
            new StringDeserializer(), new StringDeserializer());
        Runtime.getRuntime().addShutdownHook(new Thread(consumer::wakeup));
        try (Connection database = DriverManager.getConnection(System.getenv("DATABASE"))) {
            make(database);
            database.setAutoCommit(false);
            consumer.subscribe(List.of(System.getenv("SOURCE")));
            while (true) {
                ConsumerRecords<String, String> records = consumer.poll(Duration.ofMillis(300));
                if (!records.isEmpty()) {
                    write(database, records);
                    database.commit();
                    if (KEYED) {
                        consumer.commitSync();
                    }
                }
            }
        } catch (WakeupException ends) {
            consumer.close();
        }
    }

    private static void make(Connection database) throws SQLException {
        try (Statement statement = database.createStatement()) {
            statement.execute("SELECT pg_advisory_lock(1)"); // both instances may be the first
            statement.execute("CREATE TABLE IF NOT EXISTS " + TABLE + " (number bigint" + (KEYED ? " PRIMARY KEY" : "")
                + ", key text, amount bigint)");
            statement.execute("SELECT pg_advisory_unlock(1)");
        }
    }

    private static void write(Connection database, ConsumerRecords<String, String> records) throws SQLException {
        String insert = "INSERT INTO " + TABLE + " SELECT (value ->> 'number')::bigint, value ->> 'key',"
            + " (value ->> 'amount')::bigint FROM (SELECT ?::json AS value) AS record";
        try (PreparedStatement row = database.prepareStatement(KEYED ? insert + " ON CONFLICT DO NOTHING" : insert)) {
            for (ConsumerRecord<String, String> each : records) {
                row.setString(1, each.value());
                row.addBatch();
            }
            row.executeBatch();
        }
    }
}
