import java.nio.file.Path;

/** Prints vectors with cassandra-stress's own classes. Argument: the folder to write to. */
public final class Vectors {
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        Randoms.write(folder);
        Distributions.write(folder);
        Seeds.write(folder);
        Values.write(folder);
        Rows.write(folder);
    }
}
