import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

import org.apache.cassandra.stress.generate.PartitionGenerator;
import org.apache.cassandra.stress.generate.PartitionIterator;
import org.apache.cassandra.stress.generate.Row;
import org.apache.cassandra.stress.generate.Seed;
import org.apache.cassandra.stress.generate.SeedManager;
import org.apache.cassandra.stress.generate.values.Generator;
import org.apache.cassandra.stress.settings.StressSettings;

/** Whole partitions: which rows each visit yields, in which order, with which values. */
@SuppressWarnings({"unchecked", "rawtypes"})
final class Rows {
    private static final long[] SEEDS = {1, 2, 99, -5, 123456789L};

    /** kind (k, c, v), name, type, size, population, cluster. */
    private record Column(String kind, String name, String type, String size, String population, String cluster) {}

    private static Column column(String text) {
        String[] w = text.split(" +");
        return new Column(w[0], w[1], w[2], w[3], w[4], w[5]);
    }

    private final Table out;
    private final SeedManager seeds;

    private Rows(Table out) {
        this.out = out;
        // With several visits the manager keeps no list at a first write, which would take draws of its own.
        this.seeds = new SeedManager(StressSettings.parse(new String[] {"write", "n=10", "-insert", "visits=fixed(2)"}));
    }

    static void write(Path directory) throws Exception {
        try (Table out = new Table(directory, "rows/rows.tsv",
                "profile NAME ORDER: a table follows; column KIND NAME TYPE SIZE POPULATION CLUSTER (k partition key, c clustering, v value; - not given)",
                "counts MIN MAX DESCENDANT-AVERAGES COMPONENT-AVERAGES: what the generator derives from the clustering distributions",
                "partition SEED VISITS IDSEED KEY: a partition, its key's cells",
                "visit write CHANCE POPULATED POSITION: one reset, and the position it starts at; visit read CHANCE|#TARGET POPULATED POSITION",
                "rolls DOUBLES: the uniform draws that the visit took, as bits, where the chance is below 1",
                "row CELLS: one row (clustering, then value columns) as bytes of their types; null, empty",
                "end RESET POSITION: what reset answered, where the seed stands afterwards")) {
            Rows rows = new Rows(out);
            rows.flat();
            rows.clustered();
            rows.uneven();
            rows.wide();
            rows.typed();
        }
        try (Table out = new Table(directory, "rows/bounds.tsv",
                "as rows.tsv, but: bounds DEPTH LAST LOWER UPPER: the range that validation picks (LAST: positions of its last row),",
                "then the rows of it, which are always in sorted order")) {
            new Rows(out).ranges();
        }
    }

    private void flat() throws Exception {
        profile("flat", "ARBITRARY", "k key text uniform(5..12) - -", "v a int - - -", "v b blob fixed(20) - -",
                "v c double - gaussian(1..100) -", "v d text uniform(1..10) uniform(1..3) -");
        for (double populated : new double[] {1, 0.5, 0.74, 0.75, 0.1}) {
            for (long seed : SEEDS) {
                Seed s = seed(seed, 1);
                PartitionIterator it = iterator();
                visit(it, s, "write", 1, 0, populated);
                visit(it, seed(seed, 1), "read", 1, 0, populated);
            }
        }
        profile("two keys", "ARBITRARY", "k a bigint - uniform(1..10) -", "k b uuid - - -", "k c ascii fixed(4) - -", "v v int - - -");
        for (long seed : SEEDS) visit(iterator(), seed(seed, 1), "write", 1, 0, 1);
    }

    private void clustered() throws Exception {
        for (String order : new String[] {"ARBITRARY", "SORTED"}) {
            profile("one level", order, "k k int - - -", "c c bigint - - uniform(2..8)", "v v int - - -");
            for (long seed : SEEDS) visits(seed, 1, 1);
            for (int visits : new int[] {2, 3, 20}) visits(1, visits, 1);
            reads(1, 2, 5, 1);
            profile("three levels", order, "k k text fixed(6) - -", "c a text fixed(3) - fixed(3)", "c b int - uniform(1..3) fixed(3)",
                    "c c timeuuid - - fixed(4)", "v v blob fixed(3) - -", "v w int - - -");
            for (long seed : SEEDS) visits(seed, 1, 1);
            for (int visits : new int[] {2, 5, 36, 50}) visits(2, visits, 0.5);
            reads(1, 3, 10, 1000);
        }
    }

    private void uneven() throws Exception {
        profile("uneven", "ARBITRARY", "k k bigint - - -", "c a int - - uniform(1..5)", "c b int - - gaussian(1..9)", "c d int - - exp(1..10)",
                "v v int - - -");
        for (long seed : SEEDS) visits(seed, 1, 1);
        for (int visits : new int[] {2, 3, 7, 40}) for (long seed : SEEDS) visits(seed, visits, 1);
        for (long seed : SEEDS) {
            PartitionIterator it = iterator();
            for (double chance : new double[] {0.5, 0.1, 0.01, 0.9, 1, 0.3}) visit(it, seed(seed, 1), "write", chance, 0, 1);
            for (int target : new int[] {1, 2, 8}) visit(it, seed(seed, 1), "read", 0, target, 1);
            Seed split = seed(seed, 4);
            for (int i = 0; i < 6; i++) visit(it, split, "write", 0.4, 0, 1);
            // A reader of a partition that is half written sees no further than the writers came.
            Seed half = seed(seed, 3);
            visit(it, half, "write", 1, 0, 1);
            visit(it, half, "read", 1, 0, 1);
            visit(it, half, "read", 0, 3, 1);
        }
    }

    private void wide() throws Exception {
        profile("repeats", "ARBITRARY", "k k int - - -", "c a tinyint - uniform(1..4) fixed(10)", "c b boolean - - fixed(3)", "c e float - - fixed(2)",
                "v v smallint - - -");
        for (long seed : SEEDS) visits(seed, 1, 1);
        visits(1, 6, 1);
        profile("repeats", "SORTED", "k k int - - -", "c a tinyint - uniform(1..4) fixed(10)", "c b boolean - - fixed(3)", "c e float - - fixed(2)",
                "v v smallint - - -");
        for (long seed : SEEDS) visits(seed, 1, 1);
    }

    /** Each type as a clustering column, in both orders: how it feeds the seeds below it, how Java sorts it. */
    private void typed() throws Exception {
        for (String type : new String[] {"ascii", "text", "blob", "bigint", "int", "smallint", "tinyint", "varint", "decimal", "float", "double",
                "timestamp", "time", "date", "uuid", "timeuuid", "inet"}) {
            for (String order : new String[] {"ARBITRARY", "SORTED"}) {
                profile(type, order, "k k " + type + " - - -", "c c " + type + " - - fixed(5)", "c d " + type + " - gaussian(-20..20) fixed(2)", "v v int - - -");
                visits(3, 1, 1);
            }
        }
    }

    private void ranges() throws Exception {
        profile("three levels", "ARBITRARY", "k k text fixed(6) - -", "c a text fixed(3) - fixed(3)", "c b int - uniform(1..3) fixed(3)",
                "c c bigint - - fixed(4)", "v v int - - -");
        for (long seed : SEEDS) {
            for (int depth = 0; depth <= 3; depth++) {
                PartitionIterator it = iterator();
                random(seed * 31 + depth);
                var bounds = it.resetToBounds(seed(seed, 1), depth);
                out.row("partition", seed, 1, Table.field(it, "idseed"), cells(it, null, -generator.partitionKeys(), 0));
                out.row("bounds", depth, ints((int[]) Table.field(it, "lastRow")), bound(it, bounds.left, depth), bound(it, bounds.right, depth));
                while (it.hasNext()) out.row("row", cells(it, it.next(), 0, generator.columns()));
            }
        }
    }

    private String bound(PartitionIterator it, Row row, int depth) {
        return depth == 0 ? "-" : cells(it, row, 0, depth);
    }

    private Shape generator;

    private record Shape(PartitionGenerator generator, int partitionKeys, int columns) {}

    private void profile(String name, String order, String... columns) throws Exception {
        List<Generator> keys = new ArrayList<>(), clustering = new ArrayList<>(), values = new ArrayList<>();
        out.row("profile", name, order);
        for (String text : columns) {
            Column c = column(text);
            out.row("column", c.kind, c.name, c.type, c.size, c.population, c.cluster);
            Generator made = Columns.of(c.type, Columns.PROFILE, c.name, c.size, c.population, c.cluster);
            (c.kind.equals("k") ? keys : c.kind.equals("c") ? clustering : values).add(made);
        }
        PartitionGenerator made = new PartitionGenerator(keys, clustering, values, PartitionGenerator.Order.valueOf(order));
        generator = new Shape(made, keys.size(), clustering.size() + values.size());
        out.row("counts", Table.bits(made.minRowCount), Table.bits(made.maxRowCount),
                ints((int[]) Table.field(made, "clusteringDescendantAverages")), ints((int[]) Table.field(made, "clusteringComponentAverages")));
    }

    private PartitionIterator iterator() {
        return PartitionIterator.get(generator.generator(), seeds);
    }

    private static Seed seed(long seed, int visits) throws Exception {
        return Columns.construct(Seed.class, new Class<?>[] {long.class, int.class}, seed, visits);
    }

    /** A partition written in so many visits, and two more, which find nothing left. */
    private void visits(long seed, int visits, double populated) throws Exception {
        Seed s = seed(seed, visits);
        PartitionIterator it = iterator();
        for (int i = 0; i < visits + 2; i++) visit(it, s, "write", 1, 0, populated);
    }

    private void reads(int... targets) throws Exception {
        for (int target : targets) {
            for (long seed : SEEDS) visit(iterator(), seed(seed, 1), "read", 0, target, 1);
        }
    }

    private void visit(PartitionIterator it, Seed seed, String kind, double chance, int target, double populated) throws Exception {
        boolean write = kind.equals("write");
        int from = seed.position();
        long mark = 0x5eed ^ seed.seed;
        random(mark);
        boolean made = target > 0 ? it.reset(seed, target, populated, write) : it.reset(seed, chance, populated, write);
        out.row("partition", seed.seed, seed.visits, Table.field(it, "idseed"), cells(it, null, -generator.partitionKeys(), 0));
        out.row("visit", kind, target > 0 ? "#" + target : Table.bits(chance), Table.bits(populated), from);
        List<String> rows = new ArrayList<>();
        while (made && it.hasNext()) rows.add(cells(it, it.next(), 0, generator.columns()));
        String rolls = rolls(mark);
        if (!rolls.isEmpty()) out.row("rolls", rolls);
        for (String row : rows) out.row("row", row);
        out.row("end", made, seed.position());
    }

    private String cells(PartitionIterator it, Row row, int from, int to) {
        StringBuilder text = new StringBuilder();
        // Key columns count downwards from -1.
        for (int i = from; i < to; i++) {
            int index = from < 0 ? -1 - (i - from) : i;
            Object value = index < 0 ? it.getPartitionKey(-1 - index) : row.get(index);
            if (text.length() > 0) text.append(',');
            text.append(value == null ? "null" : Table.hex(generator.generator().convert(index, value)));
        }
        return text.toString();
    }

    private static String ints(int[] values) {
        return Arrays.stream(values).mapToObj(Integer::toString).reduce((a, b) -> a + "," + b).orElse("-");
    }

    // The iterator rolls with the thread's own generator, whose state lies in the thread: set it, and look how far it went.

    private static Field state() throws Exception {
        ThreadLocalRandom.current();
        return Table.declared(Thread.class, "threadLocalRandomSeed");
    }

    private static void random(long seed) throws Exception {
        state().setLong(Thread.currentThread(), seed);
    }

    private static String rolls(long seed) throws Exception {
        long end = state().getLong(Thread.currentThread());
        random(seed);
        StringBuilder text = new StringBuilder();
        while (state().getLong(Thread.currentThread()) != end) {
            if (text.length() > 0) text.append(',');
            text.append(Table.bits(ThreadLocalRandom.current().nextDouble()));
        }
        return text.toString();
    }
}
