package onceproof.wire;

import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * What to do with which requests. A rule takes so many {@code requests} of an API on its links (0: all of them until it
 * is released), after {@code skip} others.
 *
 * <pre>
 * hold            keep the request, and what follows it on its connection; deliver it at the release, also if the client
 *                 has closed its connection by then
 * delay           deliver it after delay_ms
 * drop-response   deliver it; close the connection when its response arrives
 * close           do not deliver it; close the connection
 * </pre>
 */
final class Rule {
    final String name;
    final String action;
    final long delayMs;
    final CountDownLatch released = new CountDownLatch(1);
    private final Set<String> links = new HashSet<>();
    private final int api;
    private final String client;
    private final int requests;
    private int skip;
    private int matched;

    /** Read a rule. Throws NullPointerException if a key is missing. */
    Rule(JsonNode told) {
        name = told.get("rule").asText();
        action = told.get("action").asText();
        api = told.get("api").asInt();
        told.get("links").forEach(link -> links.add(link.asText()));
        client = told.path("client").asText("");
        requests = told.path("requests").asInt(1);
        skip = told.path("skip").asInt(0);
        delayMs = told.path("delay_ms").asLong(0);
    }

    /** Return whether the rule takes this request, which then counts. */
    synchronized boolean takes(String link, Frame request) {
        boolean meant = released.getCount() > 0 && request.api == api && links.contains(link)
            && request.client.startsWith(client);
        if (!meant || requests > 0 && matched == requests) {
            return false;
        }
        if (skip > 0) {
            skip--;
            return false;
        }
        matched++;
        return true;
    }
}
