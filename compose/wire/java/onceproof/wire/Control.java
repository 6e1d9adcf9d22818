package onceproof.wire;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Supplier;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

/**
 * The rules in force, the links whose requests are reported, and those who are told: JSON lines in both directions.
 *
 * <pre>
 * {"do": "hello"}
 * {"do": "rule", "rule": "r1", "links": ["lane1->broker2"], "api": 26, "action": "hold", "requests": 1}
 * {"do": "release", "rule": "r1"}
 * {"do": "report", "links": ["lane1->broker2"]}
 * {"do": "stop", "rule": "r2", "lane": "lane1", "phase": "before-commit", "transaction": 8}
 * {"do": "go", "rule": "r2"}
 * </pre>
 *
 * Each command is answered by {@code done} or {@code refused}. Whoever is connected is told what happens to the requests
 * that a rule takes (matched, delivered, answered, dropped, lost), what waits at the phase of a transaction and goes on
 * (stopped, went-on; see {@link Lane}), and, of the links that are reported, each request of the APIs of {@link Decoder}
 * (request), its response (response), and that no further request of a connection is read (closed). What happened first
 * is told first, whatever connection it happened on.
 */
final class Control {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Map<String, Rule> rules = new ConcurrentHashMap<>();
    private final List<Rule> inOrder = new CopyOnWriteArrayList<>();
    private final Set<String> reported = ConcurrentHashMap.newKeySet();
    private final Map<String, Lane> lanes = new ConcurrentHashMap<>();
    private final List<BlockingQueue<Object>> told = new CopyOnWriteArrayList<>();

    /** Accept those who control this proxy, in a thread of their own. */
    void listen(int port) throws IOException {
        ServerSocket server = new ServerSocket(port);
        start("control", () -> {
            while (true) {
                Socket socket = server.accept();
                start("controller", () -> serve(socket));
            }
        });
    }

    /** Return the first rule that takes this request, or null. */
    Rule match(String link, Frame request) {
        for (Rule rule : inOrder) {
            if (rule.takes(link, request)) {
                return rule;
            }
        }
        return null;
    }

    /** Return the lane of a link if its transactions are to be stopped somewhere; otherwise null. */
    Lane lane(String link) {
        return lanes.get(link.substring(0, link.indexOf("->")));
    }

    /** Return whether the requests of a link are reported. */
    boolean reports(String link) {
        return reported.contains(link);
    }

    /** Tell an event to everybody who is connected. */
    synchronized void tell(Map<String, Object> event) {
        told.forEach(queue -> queue.add(event));
    }

    /** Tell an event with the time, in seconds: these events are told in the order of their times. */
    synchronized void tellTimed(Map<String, Object> event) {
        event.put("at", System.nanoTime() / 1e9);
        tell(event);
    }

    /** Tell a request or a response with the time; its body is read later. */
    synchronized void tellTimed(Map<String, Object> event, Supplier<JsonNode> body) {
        event.put("at", System.nanoTime() / 1e9);
        told.forEach(queue -> queue.add(new Told(new HashMap<>(event), body)));
    }

    private void serve(Socket socket) throws IOException {
        BlockingQueue<Object> events = new LinkedBlockingQueue<>();
        told.add(events);
        start("told", () -> write(socket.getOutputStream(), events));
        try (socket) {
            BufferedReader lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                try {
                    obey(JSON.readTree(line));
                    answer(events, Map.of("event", "done"));
                } catch (JsonProcessingException | RuntimeException error) {
                    answer(events, Map.of("event", "refused", "why", error.toString()));
                }
            }
        } finally {
            told.remove(events);
            events.add("");
        }
    }

    /** Answer a command, behind everything that has happened before. */
    private synchronized void answer(BlockingQueue<Object> events, Map<String, Object> answer) {
        events.add(answer);
    }

    private void obey(JsonNode command) {
        switch (command.get("do").asText()) {
            case "hello" -> { }
            case "rule" -> {
                Rule rule = new Rule(command);
                inOrder.remove(rules.put(rule.name, rule));
                inOrder.add(rule);
            }
            case "stop" -> lanes.computeIfAbsent(command.get("lane").asText(), none -> new Lane()).add(
                new Lane.Stop(command.get("rule").asText(), command.get("phase").asText(),
                    command.get("transaction").asInt(), new CountDownLatch(1)));
            case "go" -> lanes.values().forEach(lane -> lane.release(command.get("rule").asText()));
            case "release" -> rules.get(command.get("rule").asText()).released.countDown();
            case "report" -> command.get("links").forEach(link -> reported.add(link.asText()));
            default -> throw new IllegalArgumentException("do: allowed: hello, rule, release, stop, go, report");
        }
    }

    /**
     * Write events as lines until the connection ends; several that wait are written at once.
     *
     * A body is read here, so that neither a request nor the order of the events waits for it.
     */
    private static void write(OutputStream out, BlockingQueue<Object> events) throws IOException, InterruptedException {
        Writer writer = new OutputStreamWriter(out, StandardCharsets.UTF_8);
        for (Object event = events.take(); !event.equals(""); event = events.take()) {
            writer.write(JSON.writeValueAsString(event instanceof Told told ? told.whole() : event));
            writer.write('\n');
            if (events.isEmpty()) {
                writer.flush();
            }
        }
    }

    /** An event with the body of a request or a response, which has not been read yet. */
    private record Told(Map<String, Object> event, Supplier<JsonNode> body) {
        Map<String, Object> whole() {
            event.put("body", body.get());
            return event;
        }
    }

    /** What a thread does; the end of a connection ends it. */
    interface Work {
        /** Do it. */
        void run() throws IOException, InterruptedException;
    }

    /** Start a thread that ends with the process. */
    static Thread start(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException | InterruptedException lost) {
                // The other side has closed its connection.
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
