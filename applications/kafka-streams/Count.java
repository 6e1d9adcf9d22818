import java.util.Map;
import java.util.Properties;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.state.RocksDBConfigSetter;
import org.rocksdb.Options;

/**
 * Counts inputs by the last two digits of their amount, over a repartition topic, or by their key (BY=key) without one.
 * Either way there is a store with its changelog, and exactly_once_v2.
 */
public final class Count {
    private static final Map<String, String> ENV = System.getenv();
    private static final String AMOUNT = "\"amount\":";

    private static String group(String json) {
        int from = json.indexOf(AMOUNT) + AMOUNT.length();
        return String.valueOf(Integer.parseInt(json.substring(from, json.indexOf(',', from))) % 100);
    }

    private static String setting(String name, String otherwise) {
        return ENV.getOrDefault(name, otherwise);
    }

    /** Small memtables, so that RocksDB writes to disk what is not committed yet. */
    public static final class SmallBuffers implements RocksDBConfigSetter {
        @Override
        public void setConfig(String store, Options options, Map<String, Object> configs) {
            options.setWriteBufferSize(64 << 10);
        }

        @Override
        public void close(String store, Options options) {
        }
    }

    public static void main(String[] arguments) {
        var builder = new StreamsBuilder();
        var inputs = builder.<String, String>stream(ENV.get("SOURCE"));
        var grouped = setting("BY", "amount").equals("key")
            ? inputs.groupByKey()
            : inputs.groupBy((key, json) -> group(json));
        grouped.count().toStream().mapValues(count -> "{\"count\":" + count + "}").to(ENV.get("TARGET"));

        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, ENV.get("GROUP"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, ENV.get("BOOTSTRAP"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, ENV.get("STATE"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 3);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, setting("COMMIT_INTERVAL_MS", "200"));
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, setting("CACHE_BYTES", "10485760"));
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        if (ENV.containsKey("SMALL_BUFFERS")) {
            settings.put(StreamsConfig.ROCKSDB_CONFIG_SETTER_CLASS_CONFIG, SmallBuffers.class);
        }
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6_000);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 1_000);
        settings.put(
            StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG),
            setting("TRANSACTION_TIMEOUT_MS", "6000"));
        var streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
