import java.nio.file.Path;

/** Prints vectors with cassandra-stress's own classes. Argument: the folder to write to. */
public final class Vectors {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        Values.write(folder);
        Rows.write(folder);
    }
}
