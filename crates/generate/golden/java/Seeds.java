import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.ArrayDeque;

import org.apache.cassandra.stress.Operation;
import org.apache.cassandra.stress.WorkManager;
import org.apache.cassandra.stress.generate.Distribution;
import org.apache.cassandra.stress.generate.Seed;
import org.apache.cassandra.stress.generate.SeedManager;
import org.apache.cassandra.stress.settings.StressSettings;
import org.apache.cassandra.stress.util.JavaDriverClient;
import org.apache.cassandra.stress.util.JavaDriverV4Client;
import org.apache.cassandra.stress.util.ThriftClient;
import org.apache.cassandra.transport.SimpleClient;

/** Which partitions the seed manager hands out, for readers and writers, one after the other. */
final class Seeds {
    /** An operation that is nothing but a reader or a writer. */
    private static final class Step extends Operation {
        private final boolean write;

        Step(StressSettings settings, boolean write) {
            super(null, settings);
            this.write = write;
        }

        @Override
        public boolean isWrite() {
            return write;
        }

        @Override
        public int ready(WorkManager permits) {
            return 1;
        }

        @Override
        public String key() {
            return "";
        }

        public void run(ThriftClient client) {}

        public void run(SimpleClient client) {}

        public void run(JavaDriverClient client) {}

        public void run(JavaDriverV4Client client) {}
    }

    static void write(Path directory) throws Exception {
        try (Table out = new Table(directory, "seeds/seeds.tsv",
                "case OPTIONS: seeds of the distributions: population or lookback 3, visits 1, revisit 2; each write visits one of its partition's parts",
                "w SEED:POSITION (a write, finished at once) or r SEED (a read); none where there is no more; late: writes finish when three more have begun")) {
            run(out, "now", "wwrwrwwwwwwww", "-pop", "seq=1..5");
            run(out, "now", "wwrwrwwwwwwww", "-pop", "seq=3..7", "no-wrap");
            run(out, "now", "wrwrwrrr", "-pop", "dist=uniform(1..1000)");
            run(out, "now", "wrwrwrrr", "-pop", "dist=gaussian(1..100)");
            run(out, "now", "rwrwrwwwwrrrrwwwwwwwwrrrrwwwwrrr", "-pop", "seq=1..12", "read-lookback=uniform(1..4)");
            run(out, "now", "rwrwrwwwwrrrrwwwwwwwwrrrrwwwwrrr", "-pop", "seq=1..12", "no-wrap", "read-lookback=uniform(1..4)");
            run(out, "now", "rwrwrwwwwrrrrwwwwwwwwrrrrwwwwrrr", "-pop", "seq=0..11", "read-lookback=exp(1..4)");
            run(out, "now", "rwrwrwwwwrrrr", "-pop", "seq=100..112", "read-lookback=uniform(1..4)");
            run(out, "late", "rwrwrwwwwrrrrwwwwwwwwrrrrwwwwrrr", "-pop", "seq=1..12", "read-lookback=uniform(1..4)");
            String writes = "w".repeat(60);
            run(out, "now", writes, "-pop", "seq=1..1000", "-insert", "visits=fixed(3)", "revisit=uniform(1..10)");
            run(out, "now", writes, "-pop", "seq=1..1000", "-insert", "visits=uniform(2..4)", "revisit=exp(1..8)");
            run(out, "now", writes, "-pop", "seq=1..20", "no-wrap", "-insert", "visits=fixed(5)", "revisit=~exp(1..5)");
            run(out, "late", writes, "-pop", "seq=1..1000", "-insert", "visits=fixed(4)", "revisit=uniform(1..6)");
            run(out, "now", writes, "-pop", "dist=uniform(1..10)", "-insert", "visits=fixed(2)", "revisit=uniform(1..4)");
        }
    }

    private static void run(Table out, String mode, String steps, String... options) throws Exception {
        String[] words = new String[options.length + 2];
        words[0] = "mixed";
        words[1] = "n=1000";
        System.arraycopy(options, 0, words, 2, options.length);
        StressSettings settings = StressSettings.parse(words);
        SeedManager manager = new SeedManager(settings);
        ((Distribution) Table.field(manager, "visits")).setSeed(1);
        ((Distribution) Table.field(manager, "sample")).setSeed(2);
        Object reads = Table.field(manager, "reads");
        for (String name : new String[] {"distribution", "lookback"}) {
            try {
                ((Distribution) Table.field(reads, name)).setSeed(3);
            } catch (NoSuchFieldException e) {
                // A series has neither.
            }
        }
        out.row("case", mode, String.join(" ", options));
        Step write = new Step(settings, true), read = new Step(settings, false);
        ArrayDeque<Runnable> unfinished = new ArrayDeque<>();
        for (char step : steps.toCharArray()) {
            Seed seed = manager.next(step == 'w' ? write : read);
            if (seed == null) {
                out.row(step, "none");
                continue;
            }
            if (step == 'r') {
                out.row("r", seed.seed);
                continue;
            }
            int position = seed.moveForwards(1);
            out.row("w", seed.seed + ":" + position);
            boolean first = position == 0, last = position + 1 >= seed.visits;
            unfinished.add(() -> {
                if (first) manager.markFirstWrite(seed, last);
                if (last) manager.markLastWrite(seed, first);
            });
            while (unfinished.size() > (mode.equals("late") ? 3 : 0)) unfinished.poll().run();
        }
    }
}
