package onceproof.wire;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.Set;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

import org.apache.kafka.common.message.ProduceRequestData;
import org.apache.kafka.common.message.ProduceRequestDataJsonConverter;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.AbstractRequest;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.network.RequestConvertToJson;

/**
 * Reads requests and responses with Kafka's own classes, and returns them as JSON by the names of Kafka's message
 * definitions. Of the records in a Produce, only the headers of the batches are returned, and of a Fetch no response.
 *
 * What cannot be read (a version that this release does not have) becomes {"unreadable": why}: it is passed on all the
 * same.
 */
final class Decoder {
    static final int FETCH = ApiKeys.FETCH.id;
    private static final Set<Integer> REPORTED = Set.of(0, 8, 9, 11, 14, 22, 24, 25, 26, 28, 68);

    private Decoder() {
    }

    /** Return whether the requests of an API are reported. */
    static boolean reports(int api) {
        return REPORTED.contains(api);
    }

    /** Return the body of a request. */
    static JsonNode request(Frame frame) {
        try {
            ByteBuffer payload = frame.payload();
            RequestHeader header = RequestHeader.parse(payload);
            if (frame.api == ApiKeys.PRODUCE.id) {
                return produce(new ProduceRequestData(new ByteBufferAccessor(payload), header.apiVersion()), header);
            }
            return RequestConvertToJson.request(
                AbstractRequest.parseRequest(header.apiKey(), header.apiVersion(), new ByteBufferAccessor(payload)).request);
        } catch (RuntimeException error) {
            return unreadable(error);
        }
    }

    /** Return the body of a response; {@code body} is what follows its correlation id. */
    static JsonNode response(Frame frame, byte[] body) {
        try {
            RequestHeader header = RequestHeader.parse(frame.payload());
            ByteBuffer whole = ByteBuffer.allocate(Integer.BYTES + body.length);
            whole.putInt(frame.correlation).put(body).flip();
            return RequestConvertToJson.response(AbstractResponse.parseResponse(whole, header), header.apiVersion());
        } catch (RuntimeException error) {
            return unreadable(error);
        }
    }

    /** Return the error codes in a response, without 0, each once; nothing of a response that cannot be read. */
    static List<Integer> errors(Frame frame, byte[] body) {
        return response(frame, body).findValues("errorCode").stream().map(JsonNode::asInt).filter(code -> code != 0)
            .distinct().toList();
    }

    private static JsonNode produce(ProduceRequestData data, RequestHeader header) {
        ObjectNode told = (ObjectNode) ProduceRequestDataJsonConverter.write(data, header.apiVersion(), false);
        ArrayNode batches = told.putArray("batches");
        data.topicData().forEach(topic -> topic.partitionData().forEach(partition -> {
            if (partition.records() instanceof MemoryRecords records) {
                for (RecordBatch batch : records.batches()) {
                    ObjectNode one = batches.addObject();
                    one.put("topic", topic.name()).put("topicId", topic.topicId().toString());
                    one.put("partition", partition.index()).put("producerId", batch.producerId());
                    one.put("producerEpoch", batch.producerEpoch()).put("baseSequence", batch.baseSequence());
                    one.put("records", batch.lastOffset() - batch.baseOffset() + 1);
                    one.put("transactional", batch.isTransactional()).put("crc", batch.checksum());
                }
            }
        }));
        told.remove("topicData");
        return told;
    }

    private static JsonNode unreadable(RuntimeException error) {
        return JsonNodeFactory.instance.objectNode().put("unreadable", String.valueOf(error));
    }
}
