package onceproof;

import java.io.DataOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.MessageFormatter;

/**
 * Writes each record that the console consumer reads as a frame: partition (4 bytes), offset (8), the lengths of key and
 * value (4 each, -1 for null), key, value. Unlike lines of text, frames can hold any key and value.
 */
public final class FrameFormatter implements MessageFormatter {
    @Override
    public void writeTo(ConsumerRecord<byte[], byte[]> record, PrintStream output) {
        try {
            DataOutputStream out = new DataOutputStream(output);
            out.writeInt(record.partition());
            out.writeLong(record.offset());
            out.writeInt(record.key() == null ? -1 : record.key().length);
            out.writeInt(record.value() == null ? -1 : record.value().length);
            if (record.key() != null) out.write(record.key());
            if (record.value() != null) out.write(record.value());
            out.flush();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
