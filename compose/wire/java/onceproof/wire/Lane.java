package onceproof.wire;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;

import com.fasterxml.jackson.databind.JsonNode;

import org.apache.kafka.common.protocol.ApiKeys;

/**
 * The transactions of the clients on one lane, as their requests tell them, and where these are to be stopped.
 *
 * A phase is a request that waits here, so that neither the broker nor the client knows more than the phase says:
 *
 * <pre>
 * begun           the first request of a transaction: AddPartitionsToTxn, AddOffsetsToTxn, Produce or TxnOffsetCommit
 * produced        the next AddOffsetsToTxn, TxnOffsetCommit or EndTxn after a Produce
 * offsets-sent    the EndTxn after a TxnOffsetCommit was answered
 * before-commit   the EndTxn that commits
 * after-commit    the first request of the next transaction; the stop begins when EndTxn was answered
 * </pre>
 */
final class Lane {
    private static final int PRODUCE = ApiKeys.PRODUCE.id;
    private static final int INIT = ApiKeys.INIT_PRODUCER_ID.id;
    private static final int END = ApiKeys.END_TXN.id;
    private static final int TXN_OFFSETS = ApiKeys.TXN_OFFSET_COMMIT.id;
    private static final Set<Integer> OFFSETS = Set.of((int) ApiKeys.ADD_OFFSETS_TO_TXN.id, TXN_OFFSETS);
    private static final Set<Integer> APIS =
        Set.of(PRODUCE, INIT, (int) ApiKeys.ADD_PARTITIONS_TO_TXN.id, (int) ApiKeys.ADD_OFFSETS_TO_TXN.id, END, TXN_OFFSETS);

    /** Where to stop: at a phase of the first transaction from {@code transaction} on that reaches it. */
    record Stop(String name, String phase, int transaction, CountDownLatch released) {
    }

    private static final class Transaction {
        final int number;
        boolean produced;
        boolean offsets;
        boolean asked; // for its end
        boolean committed;

        Transaction(int number) {
            this.number = number;
        }
    }

    private final Map<String, Stop> stops = new HashMap<>();
    private final List<Stop> waiting = new ArrayList<>(); // those that are not reached yet
    private final Map<String, List<Stop>> after = new HashMap<>(); // transactional id: stops that its next one waits for
    private final Map<String, Transaction> latest = new HashMap<>();
    private int count;

    /** Add a stop. */
    synchronized void add(Stop stop) {
        stops.put(stop.name(), stop);
        waiting.add(stop);
    }

    /** Let what waits at a stop go on; a stop that was not reached is none any more. */
    synchronized void release(String name) {
        Stop stop = stops.get(name);
        waiting.remove(stop);
        if (stop != null) {
            stop.released().countDown();
        }
    }

    /** Return whether requests of an API are part of a transaction. */
    static boolean follows(int api) {
        return APIS.contains(api);
    }

    /** Take a request that has arrived. Returns the stops at which it must wait. */
    synchronized List<Stop> asked(int api, JsonNode body) {
        String name = id(body);
        if (name.isEmpty()) {
            return List.of();
        }
        if (api == INIT) { // a new process, or a client that starts anew
            latest.remove(name);
            after.remove(name);
            return List.of();
        }
        Transaction current = latest.get(name);
        List<Stop> found = new ArrayList<>();
        if (api != END) {
            if (current == null || current.asked) {
                found.addAll(after.getOrDefault(name, List.of()));
                after.remove(name);
                current = new Transaction(++count);
                latest.put(name, current);
                reached("begun", current, found);
            }
            current.produced |= api == PRODUCE;
            if (OFFSETS.contains(api) && current.produced) {
                reached("produced", current, found);
            }
        } else if (current != null && !current.asked) {
            current.asked = true;
            current.committed = body.path("committed").asBoolean();
            if (current.produced) {
                reached("produced", current, found);
            }
            if (current.offsets) {
                reached("offsets-sent", current, found);
            }
            if (current.committed) {
                reached("before-commit", current, found);
            }
        }
        return found;
    }

    /** Take the answer to a request. Returns the stops that begin now. */
    synchronized List<Stop> answered(int api, JsonNode body, JsonNode answer) {
        String name = id(body);
        Transaction current = latest.get(name);
        List<Stop> found = new ArrayList<>();
        if (current == null) {
            return found;
        }
        current.offsets |= api == TXN_OFFSETS;
        if (api == END && current.committed && answer.path("errorCode").asInt() == 0) {
            reached("after-commit", current, found);
            after.computeIfAbsent(name, none -> new ArrayList<>()).addAll(found);
        }
        return found;
    }

    /** Return the number of the latest transaction of a request's transactional id. */
    synchronized int number(JsonNode body) {
        Transaction current = latest.get(id(body));
        return current == null ? 0 : current.number;
    }

    private void reached(String phase, Transaction current, List<Stop> found) {
        waiting.removeIf(stop -> stop.phase().equals(phase) && stop.transaction() <= current.number && found.add(stop));
    }

    private static String id(JsonNode body) {
        String name = body.path("transactionalId").asText("");
        String older = body.path("v3AndBelowTransactionalId").asText("");
        return name.isEmpty() || name.equals("null") ? older : name;
    }
}
