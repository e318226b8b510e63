import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.file.Path;
import java.util.Random;

import org.apache.cassandra.stress.generate.Distribution;
import org.apache.cassandra.stress.generate.RatioDistribution;
import org.apache.cassandra.stress.settings.OptionDistribution;
import org.apache.cassandra.stress.settings.OptionRatioDistribution;

/** The distributions of the command line and of profiles. */
final class Distributions {
    private static final String[] SPECS = {
        "fixed(1)", "FIXED(-5)", "fixed(3k)", "uniform(1..10)", "UNIFORM(1...1M)", "uniform(-10..10)", "uniform(1..100B)", "uniform(7..7)",
        "gaussian(1..100)", "gauss(1..1000,5)", "NORMAL(1..10,2)", "norm(1..1M,1000,20000.5)", "gaussian(-50..50,0,400)", "gaussian(9..9,2)",
        "exp(1..10)", "exp(1..3)", "exp(5..1000)", "EXP(1..1B)", "exp(-20..20)", "extreme(1..10,1)", "extr(1..1000,0.6)", "extreme(1..1M,2.5)",
        "extr(-5..5,0.3)", "qextreme(1..1000,2,5)", "qextr(1..1M,0.8,10)", "qextreme(1..10,1,3)", "seq(1..10)", "seq(-3..3)", "seq(1..1M)",
        "~fixed(4)", "~uniform(1..10)", "~exp(1..100)", "~gaussian(1..10,2)", "~extreme(1..50,0.9)", "~seq(1..10)", "~qextreme(1..100,3,4)"
    };
    private static final String[] BAD = {
        "", "uniform", "uniform()", "uniform(1..10", "1..10", "foo(1..2)", "~~fixed(1)", "fixed(a)", "fixed(1,2)", "fixed(1.5)", "uniform(1)",
        "uniform(1..2,3)", "uniform(1,2)", "gaussian(1..2,3,4,5)", "gaussian(1..2,x)", "gaussian(1)", "exp(1)", "exp(1..2,3)", "exp(a..b)",
        "extreme(1..10)", "extreme(1..10,x)", "extreme(1..10,0)", "qextreme(1..10,1)", "qextreme(1..10,1,1.5)", "qextreme(5..5,1,2)", "seq(1)",
        "seq(5..5)", "seq(5..1)", "seq(1..2,3)", "weibull(1..2,1)", "uniform(1 ..10)x"
    };
    private static final long[] SEEDS = {1, 12345, -1L, 1L << 40};

    static void write(Path directory) throws Exception {
        try (Table samples = new Table(directory, "distributions/samples.tsv", "specification, seed, 12 whole draws, 6 real draws as bits (- where it has none);",
                        "qextreme: its second generator is set to the complement of the seed (cassandra-stress leaves it to the clock)");
                Table facts = new Table(directory, "distributions/facts.tsv", "specification, smallest, largest, average, line of the settings block");
                Table inverse = new Table(directory, "distributions/inverse.tsv", "specification, values at p = 0, 1/64, 2/64 ... 1");
                Table print = new Table(directory, "distributions/print.tsv", "specification, what `print dist=` prints")) {
            for (String spec : SPECS) {
                Distribution d = OptionDistribution.get(spec).get();
                for (long seed : SEEDS) samples.row(spec, seed, whole(d, seed, 12), real(d, seed, 6));
                facts.row(spec, d.minValue(), d.maxValue(), d.average(), OptionDistribution.get(spec).getConfigAsString());
                StringBuilder text = new StringBuilder();
                for (int i = 0; i <= 64; i++) text.append(i > 0 ? "," : "").append(d.inverseCumProb(i / 64d));
                inverse.row(spec, text);
                print.row(spec, Table.line(printed(d)));
            }
        }
        try (Table out = new Table(directory, "distributions/ratios.tsv", "specification, seed, 6 draws as bits, smallest and largest as bits, settings line")) {
            for (String spec : new String[] {"fixed(1)/1", "fixed(1)/10", "uniform(1..10)/10", "gaussian(1..100)/50", "exp(1..10)/1k", "fixed(-1)/2", "~exp(1..10)/10"}) {
                RatioDistribution ratio = OptionRatioDistribution.get(spec).get();
                Distribution d = (Distribution) Table.field(ratio, "distribution");
                d.setSeed(77);
                StringBuilder text = new StringBuilder();
                for (int i = 0; i < 6; i++) text.append(i > 0 ? "," : "").append(Table.bits(ratio.next()));
                out.row(spec, 77, text, Table.bits(ratio.min()), Table.bits(ratio.max()), OptionRatioDistribution.get(spec).getConfigAsString());
            }
        }
        try (Table out = new Table(directory, "distributions/errors.tsv", "kind, what cassandra-stress refuses, its words")) {
            for (String spec : BAD) out.row("distribution", spec, refusal(() -> OptionDistribution.get(spec)));
            for (String spec : new String[] {"", "fixed(1)", "fixed(1)/", "fixed(1)/x", "fixed(1)/1.5", "foo(1)/2"})
                out.row("ratio", spec, refusal(() -> OptionRatioDistribution.get(spec)));
        }
    }

    private static void seed(Distribution d, long seed) throws Exception {
        d.setSeed(seed);
        Distribution inner = d.getClass().getSimpleName().equals("DistributionInverted") ? (Distribution) Table.field(d, "wrapped") : d;
        if (inner.getClass().getSimpleName().equals("DistributionQuantized")) ((Random) Table.field(inner, "random")).setSeed(~seed);
    }

    private static String whole(Distribution d, long seed, int count) throws Exception {
        seed(d, seed);
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < count; i++) {
            // A draw of exactly the smallest value is outside all bands of qextreme, and cassandra-stress falls over it.
            String draw;
            try {
                draw = Long.toString(d.next());
            } catch (ArrayIndexOutOfBoundsException e) {
                draw = "fails";
            }
            text.append(i > 0 ? "," : "").append(draw);
        }
        return text.toString();
    }

    private static String real(Distribution d, long seed, int count) throws Exception {
        seed(d, seed);
        StringBuilder text = new StringBuilder();
        try {
            for (int i = 0; i < count; i++) text.append(i > 0 ? "," : "").append(Table.bits(d.nextDouble()));
        } catch (UnsupportedOperationException e) {
            return "-";
        }
        return text.toString();
    }

    private static String printed(Distribution d) throws Exception {
        Method print = Table.open(Class.forName("org.apache.cassandra.stress.settings.SettingsMisc").getDeclaredMethod("printDistribution", Distribution.class));
        PrintStream console = System.out;
        ByteArrayOutputStream caught = new ByteArrayOutputStream();
        System.setOut(new PrintStream(caught, true));
        try {
            print.invoke(null, d);
        } finally {
            System.setOut(console);
        }
        return caught.toString();
    }

    private interface Attempt {
        Object run() throws Exception;
    }

    private static String refusal(Attempt attempt) {
        try {
            attempt.run();
            return "accepted";
        } catch (Exception e) {
            return e.getMessage();
        }
    }
}
