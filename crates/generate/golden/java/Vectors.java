import java.nio.file.Path;

/** Prints vectors with cassandra-stress's own classes. Argument: the directory to write to. */
public final class Vectors {
    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        Randoms.write(directory);
        Distributions.write(directory);
        Seeds.write(directory);
        Values.write(directory);
        Rows.write(directory);
    }
}
