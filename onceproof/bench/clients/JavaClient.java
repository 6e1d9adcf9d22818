import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Measures the Java client, as the Python package of this file describes it. */
public final class JavaClient {
    private static final double CALL_S = 300;
    private static final double WARM_UP_S = 3; // the JVM compiles what is used often
    private static final int LOOK_EVERY = 32;

    private final JsonNode asked;
    private final String topic;
    private final byte[] value;

    private JavaClient(JsonNode asked) {
        this.asked = asked;
        this.topic = asked.get("topic").asText();
        this.value = new byte[asked.path("bytes").asInt(100)];
        new Random(1).nextBytes(value);
    }

    public static void main(String[] arguments) throws Exception {
        JavaClient client = new JavaClient(new ObjectMapper().readTree(arguments[0]));
        switch (client.asked.get("what").asText()) {
            case "throughput" -> client.throughput();
            case "cost" -> client.cost();
            case "read" -> client.read();
            case "scope" -> client.scope();
            case "copy" -> client.copy();
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.exit(0); // nothing is left to flush, and 512 producers take long to close
    }

    private void throughput() throws Exception {
        var sides = Map.of("without", producer(""), "with", producer("throughput"));
        sides.forEach((name, producer) -> flood(producer, WARM_UP_S, name.equals("with")));
        pairs(name -> flood(sides.get(name), asked.get("seconds").asDouble(), name.equals("with")));
    }

    private void cost() throws Exception {
        var sides = Map.of("without", producer(""), "with", producer("cost"));
        for (int warm = 0; warm < 20; warm++) {
            sides.forEach((name, producer) -> once(producer, name.equals("with")));
        }
        pairs(name -> once(sides.get(name), name.equals("with")));
    }

    private void read() throws Exception {
        int committed = asked.get("committed").asInt();
        int all = committed + asked.get("aborted").asInt();
        read("read_uncommitted", all);
        pairs(name -> name.equals("with") ? read("read_committed", committed) : read("read_uncommitted", all));
    }

    private void scope() throws Exception {
        int partitions = asked.get("partitions").asInt();
        int records = asked.get("records").asInt();
        List<KafkaProducer<byte[], byte[]>> producers = new ArrayList<>();
        List<int[]> owned = new ArrayList<>();
        if (asked.get("scope").asText().equals("partition")) {
            for (int each = 0; each < partitions; each++) {
                producers.add(producer("scope-" + each));
                owned.add(new int[] {each});
            }
        } else {
            producers.add(producer("scope-0"));
            owned.add(IntStream.range(0, partitions).toArray());
        }
        rounds(producers, owned, records, 0);
        double started = now();
        int rounds = rounds(producers, owned, records, asked.get("seconds").asDouble());
        print(Map.of("rate", (double) rounds * partitions * records / (now() - started)));
    }

    /** Copies the topic in transactions, until the process is killed. */
    private void copy() {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", asked.get("bootstrap").asText(), "group.id", asked.get("group").asText(),
            "isolation.level", "read_committed", "enable.auto.commit", false, "auto.offset.reset", "earliest",
            "max.poll.records", asked.get("records").asInt(),
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class);
        String output = asked.get("output").asText();
        try (var reader = new KafkaConsumer<byte[], byte[]>(config); var writer = producer("copy")) {
            reader.subscribe(List.of(topic));
            while (true) {
                var records = reader.poll(Duration.ofMillis(100));
                if (records.isEmpty()) {
                    continue;
                }
                Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
                writer.beginTransaction();
                for (var each : records) {
                    writer.send(new ProducerRecord<>(output, each.partition(), each.key(), each.value()));
                    var partition = new TopicPartition(topic, each.partition());
                    positions.put(partition, new OffsetAndMetadata(each.offset() + 1));
                }
                writer.sendOffsetsToTransaction(positions, reader.groupMetadata());
                writer.commitTransaction();
            }
        }
    }

    private void pairs(ToDoubleFunction<String> measure) throws Exception {
        for (int pair = 0; pair < asked.get("pairs").asInt(); pair++) {
            Map<String, Double> found = new LinkedHashMap<>();
            for (String name : pair % 2 == 1 ? List.of("without", "with") : List.of("with", "without")) {
                found.put(name, measure.applyAsDouble(name));
            }
            print(found);
        }
    }

    private KafkaProducer<byte[], byte[]> producer(String transactionalId) {
        Map<String, Object> config = new LinkedHashMap<>(Map.of(
            "bootstrap.servers", asked.get("bootstrap").asText(), "enable.idempotence", true, "linger.ms", 5,
            "key.serializer", ByteArraySerializer.class, "value.serializer", ByteArraySerializer.class));
        if (transactionalId.isEmpty()) {
            return new KafkaProducer<>(config);
        }
        config.put("transactional.id", topic + "-" + transactionalId);
        config.put("retry.backoff.ms", 5);
        var producer = new KafkaProducer<byte[], byte[]>(config);
        producer.initTransactions();
        return producer;
    }

    private double flood(KafkaProducer<byte[], byte[]> producer, double seconds, boolean transactional) {
        double every = asked.get("interval_ms").asDouble() / 1000;
        double started = now();
        double following = started + every;
        long sent = 0;
        if (transactional) {
            producer.beginTransaction();
        }
        while (now() < started + seconds) {
            if (transactional && now() >= following) {
                producer.commitTransaction();
                producer.beginTransaction();
                following = now() + every;
            }
            for (int each = 0; each < LOOK_EVERY; each++) {
                send(producer, null);
            }
            sent += LOOK_EVERY;
        }
        finish(producer, transactional);
        return sent / (now() - started);
    }

    private double once(KafkaProducer<byte[], byte[]> producer, boolean transactional) {
        int partitions = asked.get("partitions").asInt();
        double started = now();
        if (transactional) {
            producer.beginTransaction();
        }
        for (int number = 0; number < asked.get("records").asInt(); number++) {
            send(producer, number % partitions);
        }
        finish(producer, transactional);
        return (now() - started) * 1000;
    }

    private int rounds(List<KafkaProducer<byte[], byte[]>> producers, List<int[]> owned, int records, double seconds) {
        double end = now() + seconds;
        int rounds = 0;
        while (rounds == 0 || now() < end) {
            for (int each = 0; each < producers.size(); each++) {
                producers.get(each).beginTransaction();
                for (int partition : owned.get(each)) {
                    for (int record = 0; record < records; record++) {
                        send(producers.get(each), partition);
                    }
                }
                producers.get(each).commitTransaction();
            }
            rounds++;
        }
        return rounds;
    }

    private void send(KafkaProducer<byte[], byte[]> producer, Integer partition) {
        producer.send(new ProducerRecord<>(topic, partition, null, value), (where, error) -> {
            if (error != null) {
                System.err.println("a record was not acknowledged: " + error);
                Runtime.getRuntime().halt(1);
            }
        });
    }

    private static void finish(KafkaProducer<byte[], byte[]> producer, boolean transactional) {
        if (transactional) {
            producer.commitTransaction();
        } else {
            producer.flush();
        }
    }

    private double read(String isolation, int records) {
        Map<String, Object> config = Map.of(
            "bootstrap.servers", asked.get("bootstrap").asText(), "isolation.level", isolation,
            "enable.auto.commit", false, "auto.offset.reset", "earliest", "max.poll.records", 5000,
            "fetch.max.bytes", 104857600,
            "key.deserializer", ByteArrayDeserializer.class, "value.deserializer", ByteArrayDeserializer.class);
        try (var reader = new KafkaConsumer<byte[], byte[]>(config)) {
            List<TopicPartition> partitions = reader.partitionsFor(topic).stream()
                .map(each -> new TopicPartition(topic, each.partition())).toList();
            reader.assign(partitions);
            reader.seekToBeginning(partitions);
            double started = now();
            for (int count = 0; count < records;) {
                count += reader.poll(Duration.ofMillis(100)).count();
                if (now() > started + CALL_S) {
                    throw new IllegalStateException("only " + count + " of " + records + " records were read");
                }
            }
            return now() - started;
        }
    }

    private static void print(Map<String, Double> found) throws Exception {
        System.out.println(new ObjectMapper().writeValueAsString(found));
    }

    private static double now() {
        return System.nanoTime() / 1e9;
    }
}
