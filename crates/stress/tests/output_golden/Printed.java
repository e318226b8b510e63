package org.apache.cassandra.stress.report;

import java.io.File;
import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

import org.apache.cassandra.stress.settings.StressSettings;
import org.apache.cassandra.stress.util.JmxCollector;
import org.apache.cassandra.stress.util.ResultLogger;
import org.apache.cassandra.stress.util.Uncertainty;

/**
 * Has cassandra-stress's own classes print three intervals of known content: rows, summary, the table of a run in
 * steps, and the HdrHistogram log. See README.md.
 */
public class Printed {
    static long state = 1;

    /** Minimal standard generator: anybody can repeat it. */
    static long next() {
        state = state * 48271 % 2147483647;
        return state;
    }

    static Object field(Object of, String name) throws Exception {
        Field field = StressMetrics.class.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(of);
    }

    static Object call(String name, Class<?>[] types, Object of, Object... arguments) throws Exception {
        Method method = StressMetrics.class.getDeclaredMethod(name, types);
        method.setAccessible(true);
        return method.invoke(of, arguments);
    }

    @SuppressWarnings("unchecked")
    static StressMetrics run(boolean fixed, ResultLogger out, File hdr) throws Exception {
        List<String> words = new ArrayList<>(List.of("mixed", "n=1000000", "-rate", "threads=4", (fixed ? "fixed" : "throttle") + "=100000/s"));
        if (hdr != null) {
            words.add("-log");
            words.add("hdrfile=" + hdr);
        }
        StressMetrics metrics = new StressMetrics(out, 1000, StressSettings.parse(words.toArray(new String[0])));
        Map<String, TimingInterval> current = (Map<String, TimingInterval>) field(metrics, "opTypeToCurrentTimingInterval");
        Map<String, TimingInterval> summary = (Map<String, TimingInterval>) field(metrics, "opTypeToSummaryTimingInterval");
        TimingInterval total = (TimingInterval) field(metrics, "totalCurrentInterval");
        TimingInterval totals = (TimingInterval) field(metrics, "totalSummaryInterval");
        Uncertainty uncertainty = (Uncertainty) field(metrics, "rowRateUncertainty");
        long epoch = (long) field(metrics, "epochNs");
        state = 1;
        for (int second = 0; second < 3; second++) {
            long start = epoch + second * 1_000_000_000L, end = start + 1_000_000_000L;
            for (int number = 0; number < 30_000 + 5_000 * second; number++) {
                String name = next() % 3 == 0 ? "WRITE" : "READ";
                long wait = next() % 400_000, service = 100_000 + next() % 5_000_000;
                if (next() % 1000 == 0)
                    service *= 40;
                metrics.record(name, start, start + wait, start + wait + service, 3, 2, next() % 10_000 == 0);
            }
            for (Map.Entry<String, TimingInterval> own : current.entrySet()) {
                own.getValue().startNanos(start);
                own.getValue().endNanos(end);
                summary.computeIfAbsent(own.getKey(), name -> new TimingInterval(fixed)).add(own.getValue());
                total.add(own.getValue());
            }
            totals.add(total);
            uncertainty.update(total.adjustedRowRate());
            JmxCollector.GcStats none = new JmxCollector.GcStats(0);
            Class<?>[] types = {String.class, String.class, TimingInterval.class, TimingInterval.class, JmxCollector.GcStats.class, Uncertainty.class, ResultLogger.class};
            for (Map.Entry<String, TimingInterval> own : current.entrySet()) {
                call("printRow", types, null, "", own.getKey(), own.getValue(), summary.get(own.getKey()), none, uncertainty, out);
                call("logHistograms", new Class<?>[] {String.class, TimingInterval.class}, metrics, own.getKey(), own.getValue());
                own.getValue().reset();
            }
            call("printRow", types, null, "", "total", total, totals, none, uncertainty, out);
            total.reset();
        }
        metrics.summarise();
        return metrics;
    }

    static class Printer implements ResultLogger {
        public void println(String line) { System.out.println(line); }
        public void println() { System.out.println(); }
        public void printException(Exception e) { e.printStackTrace(); }
        public void flush() { System.out.flush(); }
        public void printf(String format, Object... arguments) { System.out.printf(format, arguments); }
    }

    public static void main(String[] arguments) throws Exception {
        Printer out = new Printer();
        List<StressMetrics> steps = new ArrayList<>();
        steps.add(run(true, out, arguments.length > 0 ? new File(arguments[0]) : null));
        steps.add(run(false, out, null));
        StressMetrics.summarise(List.of("4 threadCount", "104 threadCount"), steps, out);
    }
}
