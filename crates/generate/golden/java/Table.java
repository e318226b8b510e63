import java.io.IOException;
import java.io.PrintWriter;
import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;

/** One file of tab-separated vectors, and the small formats that all of them share. */
final class Table implements AutoCloseable {
    private final PrintWriter out;

    Table(Path directory, String name, String... about) throws IOException {
        Path file = directory.resolve(name);
        Files.createDirectories(file.getParent());
        out = new PrintWriter(Files.newBufferedWriter(file));
        for (String line : about) out.print("# " + line + "\n");
    }

    void row(Object... cells) {
        StringBuilder line = new StringBuilder();
        for (Object cell : cells) {
            if (line.length() > 0) line.append('\t');
            line.append(cell);
        }
        out.print(line.append('\n'));
    }

    @Override
    public void close() {
        out.close();
    }

    /** A double by its bits, so that nothing is lost in print. */
    static String bits(double value) {
        return Long.toHexString(Double.doubleToRawLongBits(value));
    }

    static String hex(ByteBuffer bytes) {
        if (bytes == null) return "null";
        if (!bytes.hasRemaining()) return "empty";
        StringBuilder text = new StringBuilder();
        for (int i = bytes.position(); i < bytes.limit(); i++) text.append(String.format("%02x", bytes.get(i)));
        return text.toString();
    }

    /** Text on one line. */
    static String line(String text) {
        return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t");
    }

    static Object field(Object of, String name) throws ReflectiveOperationException {
        return declared(of.getClass(), name).get(of);
    }

    static Field declared(Class<?> in, String name) throws NoSuchFieldException {
        for (Class<?> c = in; c != null; c = c.getSuperclass()) {
            for (Field f : c.getDeclaredFields()) {
                if (f.getName().equals(name)) return open(f);
            }
        }
        throw new NoSuchFieldException(in + "." + name);
    }

    static <T extends AccessibleObject> T open(T member) {
        member.setAccessible(true);
        return member;
    }
}
