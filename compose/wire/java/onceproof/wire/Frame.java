package onceproof.wire;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * A request as it comes in. Of its header, this reads what every version of every request has in the same place: the
 * API key, the version, the correlation id and the client id.
 */
final class Frame {
    private static final int FIXED = 10; // the bytes of the header before the client id
    private static final int LENGTH = 4;
    private static final int MOST = 104_857_600; // Kafka's socket.request.max.bytes

    final int api;
    final int version;
    final int correlation;
    final String client;
    final byte[] bytes; // the whole frame, with its length
    private JsonNode body;

    private Frame(byte[] bytes) {
        this.bytes = bytes;
        ByteBuffer head = ByteBuffer.wrap(bytes, LENGTH, bytes.length - LENGTH);
        api = head.getShort();
        version = head.getShort();
        correlation = head.getInt();
        int length = Math.max(head.getShort(), 0);
        client = new String(bytes, LENGTH + FIXED, length, StandardCharsets.UTF_8);
    }

    /** Read the next request. Throws IOException when the connection ends, or when these are no requests. */
    static Frame read(DataInputStream in) throws IOException {
        int length = in.readInt();
        if (length < FIXED || length > MOST) {
            throw new IOException("a request of " + length + " bytes");
        }
        byte[] bytes = new byte[LENGTH + length];
        ByteBuffer.wrap(bytes).putInt(length);
        in.readFully(bytes, LENGTH, length);
        return new Frame(bytes);
    }

    /** Return the body, read with Kafka's own classes. */
    synchronized JsonNode body() {
        if (body == null) {
            body = Decoder.request(this);
        }
        return body;
    }

    /** Return the request behind its length, for Kafka's own parser. */
    ByteBuffer payload() {
        return ByteBuffer.wrap(bytes, LENGTH, bytes.length - LENGTH).slice();
    }
}
