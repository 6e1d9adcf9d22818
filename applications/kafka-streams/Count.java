import java.util.Properties;

import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** Counts inputs by the last two digits of their amount: a repartition, a store with its changelog, and exactly_once_v2. */
public final class Count {
    private static final String AMOUNT = "\"amount\":";

    private static String group(String json) {
        int from = json.indexOf(AMOUNT) + AMOUNT.length();
        return String.valueOf(Integer.parseInt(json.substring(from, json.indexOf(',', from))) % 100);
    }

    public static void main(String[] arguments) {
        var env = System.getenv();
        var builder = new StreamsBuilder();
        builder.<String, String>stream(env.get("SOURCE"))
            .groupBy((key, json) -> group(json))
            .count()
            .toStream()
            .mapValues(count -> "{\"count\":" + count + "}")
            .to(env.get("TARGET"));

        var settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, env.get("GROUP"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, env.get("BOOTSTRAP"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, env.get("STATE"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 3);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 6_000);
        settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 1_000);
        settings.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 6_000);
        var streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> StreamThreadExceptionResponse.REPLACE_THREAD);
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }
}
