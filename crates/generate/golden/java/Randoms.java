import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

import org.apache.cassandra.stress.generate.FasterRandom;
import org.apache.cassandra.utils.MurmurHash;
import org.apache.commons.math3.distribution.AbstractRealDistribution;
import org.apache.commons.math3.distribution.EnumeratedDistribution;
import org.apache.commons.math3.distribution.ExponentialDistribution;
import org.apache.commons.math3.distribution.NormalDistribution;
import org.apache.commons.math3.distribution.UniformRealDistribution;
import org.apache.commons.math3.distribution.WeibullDistribution;
import org.apache.commons.math3.random.JDKRandomGenerator;
import org.apache.commons.math3.util.FastMath;
import org.apache.commons.math3.util.Pair;

/** The randomness below all else: generators, hashes, and the real distributions of commons-math. */
final class Randoms {
    private static final long[] SEEDS = {0, 1, -1, 42, 1L << 47, -987654321987654321L};

    static void write(Path directory) throws Exception {
        generators(directory);
        hashes(directory);
        commons(directory);
    }

    private static void generators(Path directory) throws Exception {
        try (Table out = new Table(directory, "random/generators.tsv", "method, seed, draws in order after it; doubles as bits")) {
            for (long seed : SEEDS) {
                Random random = new Random(seed);
                StringBuilder text = new StringBuilder();
                for (int i = 0; i < 4; i++) text.append(random.nextLong()).append(',');
                out.row("long", seed, text);
                text.setLength(0);
                random.setSeed(seed);
                for (int bound : new int[] {1, 2, 7, 64, 1000, (1 << 30) + 1, Integer.MAX_VALUE}) text.append(random.nextInt(bound)).append(',');
                out.row("below 1 2 7 64 1000 1073741825 2147483647", seed, text);
                text.setLength(0);
                random.setSeed(seed);
                for (int i = 0; i < 4; i++) text.append(Table.bits(random.nextDouble())).append(',');
                out.row("double", seed, text);
                text.setLength(0);
                // An odd count leaves a second value behind, which the next seed must forget.
                random.setSeed(seed);
                for (int i = 0; i < 101; i++) text.append(Table.bits(random.nextGaussian())).append(',');
                out.row("gaussian", seed, text);
                FasterRandom faster = new FasterRandom();
                faster.setSeed(seed);
                text.setLength(0);
                for (int i = 0; i < 70; i++) text.append(faster.nextLong()).append(',');
                out.row("faster", seed, text);
            }
        }
    }

    private static void hashes(Path directory) throws Exception {
        try (Table out = new Table(directory, "random/murmur.tsv", "bytes, seed, both words of murmur3_x64_128")) {
            List<byte[]> inputs = new ArrayList<>();
            for (String text : new String[] {"randomstrkey", "randomstrC0", "seed for stressName_2", "é€𝄞"})
                inputs.add(text.getBytes(StandardCharsets.UTF_8));
            Random random = new Random(3);
            for (int length = 0; length < 50; length++) {
                byte[] bytes = new byte[length];
                random.nextBytes(bytes);
                inputs.add(bytes);
            }
            for (byte[] bytes : inputs) {
                for (long seed : new long[] {0, 104729}) {
                    long[] hash = new long[2];
                    MurmurHash.hash3_x64_128(ByteBuffer.wrap(bytes), 0, bytes.length, seed, hash);
                    out.row(Table.hex(ByteBuffer.wrap(bytes)), seed, hash[0], hash[1]);
                }
            }
        }
    }

    private static void commons(Path directory) throws Exception {
        try (Table out = new Table(directory, "random/commons.tsv",
                "distribution, parameters as bits, seed, draws after reseeding; or inverse, p and its value in turn; all as bits")) {
            double[][] normals = {{0, 1}, {5.5, 1.5}, {-100, 33.3}};
            for (double[] p : normals) draws(out, "normal", new NormalDistribution(new JDKRandomGenerator(), p[0], p[1], 1e-9), p);
            double[][] uniforms = {{0, 1}, {1, 101}, {-7, 1e11}};
            for (double[] p : uniforms) draws(out, "uniform", new UniformRealDistribution(new JDKRandomGenerator(), p[0], p[1]), p);
            double[][] means = {{1}, {12.75}, {1e7 / 3}};
            for (double[] p : means) draws(out, "exponential", new ExponentialDistribution(new JDKRandomGenerator(), p[0], 1e-9), p);
            double[][] shapes = {{1, 1}, {0.6, 100}, {2, 3.5}, {7.3, 1e6}};
            for (double[] p : shapes) draws(out, "weibull", new WeibullDistribution(new JDKRandomGenerator(), p[0], p[1], 1e-9), p);
        }
        try (Table out = new Table(directory, "random/functions.tsv", "ln x value, or pow base exponent value, as bits (commons-math's FastMath)")) {
            Random random = new Random(9);
            for (int i = 0; i < 150; i++) {
                double x = i < 50 ? random.nextDouble() : i < 100 ? 1 - Math.pow(random.nextDouble(), 12) : Math.exp(50 * random.nextGaussian());
                out.row("ln", Table.bits(x), Table.bits(FastMath.log(x)));
                double base = -Math.log(random.nextDouble()), exponent = 1 / (0.1 + 4 * random.nextDouble());
                out.row("pow", Table.bits(base), Table.bits(exponent), Table.bits(FastMath.pow(base, exponent)));
            }
        }
        try (Table out = new Table(directory, "random/weighted.tsv", "weights, seed, which one was drawn each time (commons-math's EnumeratedDistribution)")) {
            for (double[] weights : new double[][] {{1}, {1, 1}, {3, 0, 1}, {0.1, 0.7, 0.15, 0.05}, {5, 2, 1, 1, 1}}) {
                for (long seed : SEEDS) {
                    List<Pair<Integer, Double>> pairs = new ArrayList<>();
                    for (int i = 0; i < weights.length; i++) pairs.add(new Pair<>(i, weights[i]));
                    JDKRandomGenerator random = new JDKRandomGenerator();
                    random.setSeed(seed);
                    EnumeratedDistribution<Integer> choice = new EnumeratedDistribution<>(random, pairs);
                    StringBuilder text = new StringBuilder(), all = new StringBuilder();
                    for (int i = 0; i < 40; i++) text.append(choice.sample());
                    for (double weight : weights) all.append(all.length() > 0 ? "," : "").append(weight);
                    out.row(all, seed, text);
                }
            }
        }
    }

    private static void draws(Table out, String name, AbstractRealDistribution distribution, double[] parameters) {
        StringBuilder given = new StringBuilder(), text = new StringBuilder();
        for (double parameter : parameters) given.append(given.length() > 0 ? "," : "").append(Table.bits(parameter));
        for (long seed : SEEDS) {
            distribution.reseedRandomGenerator(seed);
            text.setLength(0);
            for (int i = 0; i < 12; i++) text.append(Table.bits(distribution.sample())).append(',');
            out.row(name, given, seed, text);
        }
        text.setLength(0);
        for (double p : new double[] {0, 1e-9, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 0.9999999, 1 - 1e-15, 1})
            text.append(Table.bits(p)).append(',').append(Table.bits(distribution.inverseCumulativeProbability(p))).append(',');
        out.row(name, given, "inverse", text);
    }
}
