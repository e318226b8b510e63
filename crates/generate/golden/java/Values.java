import java.nio.file.Path;

import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.stress.generate.values.Generator;

/** Values of single columns: every type that cassandra-stress knows, under several distributions. */
final class Values {
    private static final String[] SIZED = {"ascii", "text", "varchar", "blob"};
    private static final String[] NUMBERS = {
        "bigint", "counter", "int", "smallint", "tinyint", "varint", "decimal", "float", "double", "boolean", "timestamp",
        "time", "date", "uuid", "timeuuid", "inet"
    };
    private static final String[] SIZES = {"-", "fixed(34)", "uniform(1..300)", "gaussian(10..500)", "exp(1..1000)", "extreme(1..100,0.6)"};
    private static final String[] POPULATIONS = {
        "-", "fixed(7)", "uniform(1..100)", "uniform(1..100B)", "gaussian(1..1000,5)", "gaussian(-500..500,10,30)",
        "exp(1..1M)", "extreme(1..10000,0.6)", "~exp(1..50)", "seq(1..10)"
    };
    private static final long[] SEEDS = {1, 2, 1000, -77, 123456789012345L, Long.MIN_VALUE};

    static void write(Path directory) throws Exception {
        try (Table out = new Table(directory, "values/values.tsv",
                "type, text hashed before the name, name, size, population, seed, three values after one setSeed(seed), as bytes of the type")) {
            for (String type : SIZED) {
                for (String size : SIZES) values(out, type, Columns.PROFILE, "col", size, "-", SEEDS);
                for (String population : POPULATIONS) values(out, type, Columns.PROFILE, "Name_2", "uniform(1..20)", population, SEEDS);
            }
            for (String type : NUMBERS) {
                for (String population : POPULATIONS) {
                    if (type.equals("timeuuid") && population.startsWith("seq")) continue;
                    values(out, type, Columns.PROFILE, "c_" + type, "-", population, SEEDS);
                }
            }
            // The size of a collection is never seeded by cassandra-stress, so only fixed sizes can be repeated.
            for (String outer : new String[] {"list", "set"}) {
                for (String inner : SIZED) values(out, outer + "<" + inner + ">", Columns.PROFILE, "many", "fixed(3)", "-", SEEDS);
                for (String inner : NUMBERS) {
                    if (inner.equals("counter")) continue;
                    values(out, outer + "<" + inner + ">", Columns.PROFILE, "many", "fixed(5)", "-", SEEDS);
                    values(out, outer + "<" + inner + ">", Columns.PROFILE, "few", "fixed(6)", "uniform(1..4)", SEEDS);
                }
            }
        }
        try (Table out = new Table(directory, "values/predefined.tsv",
                "the columns of standard1: generator, text hashed before the name, name, size, population, seed, three values after one setSeed(seed)")) {
            for (String size : new String[] {"fixed(10)", "fixed(1)", "fixed(16)", "fixed(17)", "fixed(40)"})
                values(out, "hexbytes", "randomstr", "key", size, "-", SEEDS);
            for (String name : new String[] {"C0", "C1", "C2", "C3", "C4", "C17"}) {
                values(out, "bytes", "randomstr", name, "fixed(34)", "-", SEEDS);
                values(out, "bytes", "randomstr", name, "fixed(1024)", "-", new long[] {5});
                values(out, "bytes", "randomstr", name, "uniform(10..60)", "-", SEEDS);
            }
        }
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static void values(Table out, String type, String seedText, String name, String size, String population, long[] seeds)
            throws Exception {
        Generator generator = Columns.of(type, seedText, name, size, population, "-");
        for (long seed : seeds) {
            generator.setSeed(seed);
            StringBuilder cells = new StringBuilder();
            for (int i = 0; i < 3; i++) {
                if (i > 0) cells.append(',');
                cells.append(Table.hex(((AbstractType) generator.type).decompose(generator.generate())));
            }
            out.row(type, seedText, name, size, population, seed, cells);
        }
    }
}
