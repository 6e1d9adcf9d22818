package onceproof.wire;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * A connection of a client, and the one to the broker that belongs to it.
 *
 * A request that is held is delivered although its client may have gone. So the connection to the broker stays open until
 * what was held is answered, for ten seconds at most.
 */
final class Connection {
    private static final int CHUNK = 256 * 1024;
    private static final int HEAD = 8; // the length and the correlation id of a response
    private static final long ANSWER_MS = 10_000;
    private static final int GONE_MS = 200; // how long to wait for the end of what the client sends
    private static final int AHEAD = 4 * 1024 * 1024; // bytes to look ahead for it

    /** A request that waits for its response: the rule that took it, and whether the response is reported. */
    private record Awaited(Rule rule, Frame request, boolean reported) {
    }

    private final int number;
    private final String link;
    private final Control control;
    private final SocketChannel client;
    private final SocketChannel broker;
    private final Map<Integer, Awaited> awaited = new ConcurrentHashMap<>();
    private final boolean reported;
    private final Lane lane; // null: its transactions are stopped nowhere
    private boolean fetched; // a Fetch was reported: those that follow on this connection are alike

    Connection(int number, String link, Control control, SocketChannel client, SocketChannel broker) {
        this.number = number;
        this.link = link;
        this.control = control;
        this.client = client;
        this.broker = broker;
        reported = control.reports(link);
        lane = control.lane(link);
    }

    /** Pass on requests and responses until the client has closed and what was held is answered, or the broker closes. */
    void run() throws IOException {
        Thread responses = Control.start(link + " " + number + " responses", this::responses);
        try {
            requests();
        } catch (IOException | InterruptedException lost) {
            // The client or the broker has closed its connection.
        }
        if (reported) {
            control.tellTimed(about("closed", null));
        }
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ANSWER_MS);
        try {
            while (held() && responses.isAlive() && System.nanoTime() < deadline) {
                responses.join(50);
            }
        } catch (InterruptedException never) {
            Thread.currentThread().interrupt();
        }
        client.close();
        broker.close();
    }

    private boolean held() {
        return awaited.values().stream().anyMatch(each -> each.rule != null);
    }

    private void requests() throws IOException, InterruptedException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(client.socket().getInputStream(), CHUNK));
        OutputStream out = broker.socket().getOutputStream();
        while (true) {
            Frame request = Frame.read(in);
            boolean report = reported && (Decoder.reports(request.api) || request.api == Decoder.FETCH && !fetched);
            fetched |= report && request.api == Decoder.FETCH;
            if (report) {
                report(request);
            }
            List<Lane.Stop> stops = stops(request);
            if (!stops.isEmpty() && !waits(stops, request, in)) {
                return;
            }
            Rule rule = control.match(link, request); // a fault that begins at a stop may have made it meanwhile
            if (rule != null && !deliver(request, rule)) {
                return;
            }
            if (rule != null || report && request.api != Decoder.FETCH) {
                awaited.put(request.correlation, new Awaited(rule, request, report));
            }
            try {
                out.write(request.bytes);
            } catch (IOException lost) {
                if (rule != null) {
                    tell("lost", rule, request.correlation);
                }
                throw lost;
            }
            if (rule != null) {
                tell("delivered", rule, request.correlation);
            }
        }
    }

    private void report(Frame request) {
        Map<String, Object> event = about("request", request.correlation);
        event.put("api", request.api);
        event.put("version", request.version);
        event.put("client", request.client);
        control.tellTimed(event, request::body);
    }

    private List<Lane.Stop> stops(Frame request) {
        return lane == null || !Lane.follows(request.api) ? List.of() : lane.asked(request.api, request.body());
    }

    /** Let a request wait at all of these stops. Returns false if its client has gone by the end. */
    private boolean waits(List<Lane.Stop> stops, Frame request, DataInputStream in) throws IOException, InterruptedException {
        for (Lane.Stop stop : stops) {
            if (!stop.phase().equals("after-commit")) { // that one has been told
                control.tellTimed(stopped("stopped", stop, request));
            }
        }
        for (Lane.Stop stop : stops) {
            stop.released().await();
        }
        if (gone(in)) {
            return false;
        }
        for (Lane.Stop stop : stops) {
            control.tellTimed(stopped("went-on", stop, request));
        }
        return true;
    }

    /** Return whether the client has closed its connection. */
    private boolean gone(DataInputStream in) throws IOException {
        client.socket().setSoTimeout(GONE_MS);
        in.mark(AHEAD);
        try { // the end comes behind what the client has already sent
            return in.readNBytes(AHEAD).length < AHEAD;
        } catch (SocketTimeoutException open) {
            return false;
        } finally {
            in.reset();
            client.socket().setSoTimeout(0);
        }
    }

    private Map<String, Object> stopped(String kind, Lane.Stop stop, Frame request) {
        Map<String, Object> event = about(kind, request.correlation);
        event.put("rule", stop.name());
        event.put("phase", stop.phase());
        event.put("count", stop.transaction());
        event.put("transaction", lane.number(request.body()));
        return event;
    }

    /** Do what a rule says before a request is delivered. Returns false if it must not be delivered. */
    private boolean deliver(Frame request, Rule rule) throws InterruptedException {
        Map<String, Object> event = about("matched", request.correlation);
        event.put("rule", rule.name);
        event.put("action", rule.action);
        event.put("key", request.api);
        event.put("version", request.version);
        event.put("client", request.client);
        event.put("size", request.bytes.length);
        control.tell(event);
        switch (rule.action) {
            case "hold" -> rule.released.await();
            case "delay" -> Thread.sleep(rule.delayMs);
            default -> { }
        }
        return !rule.action.equals("close");
    }

    private void responses() throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(broker.socket().getInputStream(), CHUNK));
        byte[] chunk = new byte[CHUNK];
        ByteBuffer head = ByteBuffer.wrap(chunk);
        try (client; broker) {
            while (true) {
                in.readFully(chunk, 0, HEAD);
                int left = head.getInt(0) - Integer.BYTES;
                int correlation = head.getInt(Integer.BYTES);
                Awaited request = awaited.get(correlation);
                if (request == null) {
                    pass(in, chunk, HEAD, left);
                    continue;
                }
                byte[] body = in.readNBytes(left);
                if (request.reported) {
                    answered(request.request, body);
                }
                boolean drop = request.rule != null && request.rule.action.equals("drop-response");
                if (!drop) {
                    toClient(chunk, HEAD);
                    toClient(body, body.length);
                }
                if (drop) {
                    tell("dropped", request.rule, correlation);
                    return;
                }
                if (request.rule != null) {
                    Map<String, Object> told = about("answered", correlation);
                    told.put("rule", request.rule.name);
                    told.put("errors", request.rule.action.equals("hold") ? Decoder.errors(request.request, body) : List.of());
                    control.tell(told);
                }
                awaited.remove(correlation);
            }
        }
    }

    /** Tell a response, and the stops that begin with it: the client's next request may have to wait at one. */
    private void answered(Frame request, byte[] body) {
        Map<String, Object> event = about("response", request.correlation);
        if (lane == null || !Lane.follows(request.api)) {
            control.tellTimed(event, () -> Decoder.response(request, body));
            return;
        }
        JsonNode answer = Decoder.response(request, body);
        control.tellTimed(event, () -> answer);
        for (Lane.Stop stop : lane.answered(request.api, request.body(), answer)) {
            control.tellTimed(stopped("stopped", stop, request));
        }
    }

    /** Pass on a response of which the first bytes are read, in chunks. */
    private void pass(DataInputStream in, byte[] chunk, int read, int left) throws IOException {
        int there = read;
        int still = left;
        while (still > 0 || there > 0) {
            int more = Math.min(still, chunk.length - there);
            in.readFully(chunk, there, more);
            toClient(chunk, there + more);
            still -= more;
            there = 0;
        }
    }

    /** Write to a client that may have gone: what was held for it is answered all the same. */
    private void toClient(byte[] bytes, int length) {
        try {
            client.socket().getOutputStream().write(bytes, 0, length);
        } catch (IOException gone) {
            // The requests' side ends this connection.
        }
    }

    private void tell(String event, Rule rule, int correlation) {
        Map<String, Object> told = about(event, correlation);
        told.put("rule", rule.name);
        control.tell(told);
    }

    private Map<String, Object> about(String event, Integer correlation) {
        Map<String, Object> told = new HashMap<>();
        told.put("event", event);
        told.put("link", link);
        told.put("connection", number);
        if (correlation != null) {
            told.put("correlation", correlation);
        }
        return told;
    }
}
