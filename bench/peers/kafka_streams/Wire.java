import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

/** Stored rows as bytes: zigzag varints, and texts with their length. */
final class Wire {
    private Wire() {}

    static final class Writer extends ByteArrayOutputStream {
        Writer() {
            super(512);
        }

        Writer number(long value) {
            long rest = (value << 1) ^ (value >> 63);
            while ((rest & ~0x7FL) != 0) {
                write((int) (rest & 0x7F) | 0x80);
                rest >>>= 7;
            }
            write((int) rest);
            return this;
        }

        Writer flag(boolean value) {
            write(value ? 1 : 0);
            return this;
        }

        Writer real(double value) {
            long bits = Double.doubleToRawLongBits(value);
            for (int shift = 56; shift >= 0; shift -= 8) {
                write((int) (bits >>> shift));
            }
            return this;
        }

        Writer text(String value) {
            if (value == null) {
                return number(-1);
            }
            byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
            number(bytes.length);
            write(bytes, 0, bytes.length);
            return this;
        }
    }

    static final class Reader {
        private final byte[] bytes;
        private int at;

        Reader(byte[] bytes) {
            this.bytes = bytes;
        }

        long number() {
            long value = 0;
            int shift = 0;
            byte part;
            do {
                part = bytes[at++];
                value |= (long) (part & 0x7F) << shift;
                shift += 7;
            } while (part < 0);
            return (value >>> 1) ^ -(value & 1);
        }

        boolean flag() {
            return bytes[at++] != 0;
        }

        double real() {
            long bits = 0;
            for (int part = 0; part < 8; part++) {
                bits = bits << 8 | bytes[at++] & 0xFF;
            }
            return Double.longBitsToDouble(bits);
        }

        String text() {
            int length = (int) number();
            if (length < 0) {
                return null;
            }
            String value = new String(bytes, at, length, StandardCharsets.UTF_8);
            at += length;
            return value;
        }
    }

    /** What a store keeps. */
    interface Stored {
        void write(Writer writer);
    }

    static <T extends Stored> Serde<T> serde(Function<Reader, T> read) {
        return new Serde<>() {
            @Override
            public Serializer<T> serializer() {
                return (topic, row) -> {
                    if (row == null) {
                        return null;
                    }
                    Writer writer = new Writer();
                    row.write(writer);
                    return writer.toByteArray();
                };
            }

            @Override
            public Deserializer<T> deserializer() {
                return (topic, data) -> data == null ? null : read.apply(new Reader(data));
            }
        };
    }
}
